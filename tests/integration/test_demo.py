"""The demo on three droplets: a comparison on the terminal and a page with pictures."""

from __future__ import annotations

from spectrakan.cli.demo import demo


def test_the_demo_compares_two_models_and_writes_a_page(tmp_path, capsys):
    demo(output=tmp_path / "demo.html", samples=10, epochs=1)
    told = capsys.readouterr().out
    assert "spectrakan" in told
    assert "fno" in told
    text = (tmp_path / "demo.html").read_text()
    assert text.count("data:image/png;base64,") == 3
    assert "Error against time" in text
