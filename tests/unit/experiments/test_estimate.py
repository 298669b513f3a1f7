"""Costs: frames are counted as training takes them, and cells add up."""

from __future__ import annotations

import math

import pytest

from experiments.archive import Archive
from experiments.cells import Cell, run_settings
from experiments.costs import Estimator, data_of, trained_frames
from experiments.datasets import Datasets
from experiments.scales import SCALES
from spectrakan.data.prepare import prepare
from spectrakan.training.assemble import training_windows


@pytest.mark.parametrize("case", SCALES["smoke"].cases)
def test_frames_are_those_of_the_loader(case: str, archive: Archive):
    cell = Cell("main", "smoke", case, "fno")
    config = run_settings(cell, str(Datasets(archive).training_file(cell)))
    prepared = prepare(config.task, config.data)
    windows = training_windows(config, prepared)
    expected = config.training.epochs * len(windows) * config.training.horizon
    for found in (config, run_settings(cell)):
        assert trained_frames(found) == expected, "with the file and before there is one"
        assert data_of(found).signature() == prepared.signature()


def test_a_cell_costs_its_frames_times_its_step(monkeypatch):
    monkeypatch.setattr("experiments.costs.step_seconds", lambda model, space, **_: 0.8)
    cell = Cell("main", "short", "darcy2d", "fno")
    epochs = run_settings(cell).training.epochs
    assert math.isclose(Estimator().seconds(cell), 0.1 * epochs * (900 + 100 / 3))
    assert Estimator().seconds(Cell("main", "short", "darcy2d", "climatology")) == 0.0


def test_an_epoch_at_paper_scale_predicts_each_trajectory_once():
    expected = {
        "cns1d": 9000 * 11,
        "diffusion_reaction1d": 9000 * 96,
        "shallow_water2d": 900 * 91,
        "droplet2d": 900 * 31,
    }
    for case, frames in expected.items():
        assert trained_frames(run_settings(Cell("main", "paper", case, "fno"))) == 500 * frames
