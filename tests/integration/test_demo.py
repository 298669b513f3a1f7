"""The demo on a few droplets: a comparison on the terminal, and a page with pictures on shared scales."""

from __future__ import annotations

import pytest
from figure_reading import maps, mesh
from page_outline import outline

from spectrakan.cli import demo as command
from spectrakan.report import figures


@pytest.fixture
def drawn(monkeypatch):
    """The figures of maps that the demo draws."""
    made = []

    def kept(*given):
        made.append(field_maps(*given))
        return made[-1]

    field_maps = figures.field_maps
    monkeypatch.setattr(figures, "field_maps", kept)
    return made


def test_the_demo_compares_two_models_and_writes_a_page(tmp_path, capsys, drawn):
    command.demo(output=tmp_path / "demo.html", samples=10, epochs=1)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("spectrakan") for line in lines)
    assert any(line.startswith("fno") for line in lines)
    assert lines[-5] == f"The page with pictures is {tmp_path / 'demo.html'}"
    assert [line.split()[:2] for line in lines[-3:]] == [
        ["spectrakan", "train"],
        ["spectrakan", "report"],
        ["spectrakan", "serve"],
    ]
    found = outline((tmp_path / "demo.html").read_text())
    assert len(found.named("img")) == 2
    assert "Error against time" in found.words

    (figure,) = drawn
    limits = {axes.get_title().partition("\n")[0]: mesh(axes).get_clim() for axes in maps(figure)}
    truth = next(bounds for title, bounds in limits.items() if title.startswith("truth"))
    assert limits["SpectraKAN"] == limits["FNO"] == truth, "one scale for the truth and all predictions"
    errors = {mesh(axes).get_clim() for axes in maps(figure) if axes.get_title() == "error"}
    assert len(errors) == 1, "one scale for all errors"
    ((low, high),) = errors
    assert low == -high
