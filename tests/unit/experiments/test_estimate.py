"""Costs: frames are counted as training takes them, and cells add up."""

from __future__ import annotations

import math

import pytest

from spectrakan.data.prepare import prepare
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell, run_settings
from spectrakan.experiments.datasets import Datasets
from spectrakan.experiments.estimate import Estimator, signature_of, trained_frames
from spectrakan.experiments.scales import SCALES, scale_named
from spectrakan.training.assemble import training_windows


@pytest.mark.parametrize("case", list(SCALES["smoke"].cases))
def test_frames_are_those_of_the_loader(case: str, archive: Archive):
    scale = scale_named("smoke")
    path = Datasets(scale, archive.cache, archive.ledger).training_file(case)
    choices = run_settings(Cell("main", "smoke", case, "fno"), str(path))
    prepared = prepare(choices.task, choices.data)
    windows = training_windows(choices, prepared)
    assert (
        trained_frames(scale.cases[case], choices)
        == choices.training.epochs * len(windows) * choices.training.horizon
    )
    assert signature_of(scale.cases[case]) == windows.signature()


def test_a_cell_costs_its_frames_times_its_step(monkeypatch):
    monkeypatch.setattr("spectrakan.experiments.estimate.step_seconds", lambda model, space, **_: 0.8)
    cell = Cell("main", "small", "darcy2d", "fno")
    epochs = SCALES["small"].cases["darcy2d"].training["epochs"]
    assert math.isclose(Estimator().seconds(cell), 0.1 * epochs * (900 + 100 / 3))
    assert Estimator().seconds(Cell("main", "small", "darcy2d", "climatology")) == 0.0


def test_an_epoch_at_paper_scale_predicts_each_trajectory_once():
    expected = {
        "cns1d": 9000 * 11,
        "diffusion_reaction1d": 9000 * 96,
        "shallow_water2d": 900 * 91,
        "droplet2d": 900 * 31,
    }
    for case, frames in expected.items():
        choices = run_settings(Cell("main", "paper", case, "fno"), None)
        assert trained_frames(SCALES["paper"].cases[case], choices) == 500 * frames
