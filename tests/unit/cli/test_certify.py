"""The command that certifies a run: what it writes, and that a refuted bound ends in failure."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from spectrakan.cli import app
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models import build_model
from spectrakan.theory import certify_radii
from spectrakan.theory.certificate import Certificate, Entry, LayerEdges


def certificate(bound: float, attacked: float) -> Certificate:
    entries = {
        "kan_hull_product": Entry(3.0, "certified", "a product"),
        "modulation": Entry(bound, "certified", "modulation", attacked),
        "modulation_paper": Entry(1e9, "certified", "the paper's", attacked),
        "prediction_change": Entry(0.4, "certified", "prediction", 0.13),
    }
    edges = (LayerEdges([[3.0]], [[2.0]], [[1.0]]),)
    return Certificate(0.1, 1, (8,), entries, edges, {"M_s": 1.0}, log_modulation_paper=20.7)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Start the command on a folder whose data, model and certificate are given, and give its exit code."""

    def start(found: Certificate, cap: float | None = None) -> int:
        window = Window(inputs=torch.zeros(1, 1, 8, 1), targets=torch.zeros(1, 1, 8, 1))
        control = SimpleNamespace(cap=cap, measure="hull")
        config = SimpleNamespace(training=SimpleNamespace(lipschitz=control))
        subject = SimpleNamespace(model=None, config=config, first_window=lambda count: window)
        monkeypatch.setattr("spectrakan.cli.subject.load_subject", lambda *_, **__: subject)
        monkeypatch.setattr(
            "spectrakan.theory.certify_radii",
            lambda _, __, radii, **___: [replace(found, radius=each) for each in radii],
        )
        monkeypatch.setattr("sys.argv", ["spectrakan", "certify", str(tmp_path)])
        with pytest.raises(SystemExit) as end:
            app.main()
        return int(end.value.code or 0)

    return start


def test_bounds_that_hold_are_written_and_shown(run, tmp_path, capsys):
    assert run(certificate(2.0, 1.0), cap=3.0) == 0
    record = json.loads((tmp_path / "certificate.json").read_text())
    assert record["entries"]["modulation"]["ratio"] == 2.0
    assert record["beaten"] == []
    shown = capsys.readouterr().out
    assert "the cap holds" in shown
    assert "certified" in shown
    expected = (
        "Inputs off by at most 10 % of the fields' standard deviation change the prediction anywhere by at most 4 %"
    )
    assert f"{expected} of its own; worst found 1.3 %." in shown
    assert "8 cells" in shown
    smaller = "Inputs off by at most 1 % of the fields' standard deviation change the prediction anywhere by at most"
    assert f"{smaller} 0.4 % of its own; worst found 0.13 %." in shown
    assert (tmp_path / "certificate.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(("bound", "loose"), [(100.0, False), (2000.0, True)])
def test_a_bound_far_above_the_worst_found_is_called_too_loose(bound, loose):
    found = certificate(2.0, 1.0)
    entry = Entry(bound, "certified", "prediction", 1.0)
    sentence = replace(found, entries={**found.entries, "prediction_change": entry}).sentence
    assert ("too loose to be of use" in sentence) == loose
    assert f"{10 * bound:.3g} % of its own" in sentence
    assert "worst found 10 %" in sentence


def test_the_picture_has_the_bound_and_the_worst_found_against_the_radius():
    module = import_module("spectrakan.cli.certify")
    unproved = Entry(0.5, "estimated", "prediction", 0.5)
    first = certificate(2.0, 1.0)
    last = replace(first, radius=1.0, entries={**first.entries, "prediction_change": unproved})
    (axes,) = module.picture([replace(first, radius=0.01), first, last]).axes
    bound, found = axes.lines
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    np.testing.assert_allclose(bound.get_xdata(), [0.01, 0.1, 1.0])
    np.testing.assert_allclose(bound.get_ydata(), [0.004, 0.04, np.nan])
    np.testing.assert_allclose(found.get_ydata(), [0.0013, 0.013, 0.5])
    assert [line.get_label() for line in axes.lines] == ["proved bound", "worst found"]


def test_a_beaten_bound_ends_in_failure(run, tmp_path, capsys):
    assert run(certificate(0.9, 1.0)) == 1
    assert "refuted: modulation" in capsys.readouterr().err
    assert json.loads((tmp_path / "certificate.json").read_text())["beaten"] == ["modulation"]


def test_a_broken_cap_ends_in_failure(run):
    assert run(certificate(2.0, 1.0), cap=2.5) == 1


def test_how_far_the_bounds_are_is_told_from_0_to_100():
    signature = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    model = build_model("spectrakan", signature, width=4, num_modes=2, num_layers=2)
    inputs, told = torch.randn(2, 1, 8, 1, generator=torch.Generator().manual_seed(0)), []
    certify_radii(model, inputs, [0.1, 0.01], progress=lambda done, total: told.append((done, total)))
    shares = [done for done, _ in told]
    assert {total for _, total in told} == {100}
    assert shares == sorted(shares)
    assert len(set(shares)) > 10
    assert shares[0] < 25
    assert shares[-1] == 100
