"""Error against time, passing times, spectra and drift, on operators whose errors are known."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from known_operators import Scaled, Solver, evolving, held

from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.evaluation import EvaluationSettings, profile
from spectrakan.evaluation.profile import ErrorGrowth
from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories
from spectrakan.metrics import evaluate_fields
from spectrakan.models import build_model


def test_known_growth_gives_known_curves_and_passing_times():
    """u -> 1.1 u on a field that stays: after k steps the relative error is 1.1^k - 1."""
    data = held(samples=5, frames=9)
    found = profile(
        Scaled(evolving(), factor=1.1),
        data,
        thresholds=[0.05, 0.155, 10.0],
        settings=EvaluationSettings(batch_size=2),
    )
    assert found["horizon"] == 8
    assert found["lead_times"] == pytest.approx([0.5 * k for k in range(1, 9)])
    growth = [1.1**k - 1 for k in range(1, 9)]
    for name in ("all", "u"):
        np.testing.assert_allclose(found["relative_l2"][name], growth, rtol=1e-5)
    size = np.sqrt((np.asarray(data.values)[:, 0] ** 2).mean((1, 2))).mean()
    np.testing.assert_allclose(found["rmse"]["all"], np.array(growth) * size, rtol=1e-5)
    below, between, never = found["thresholds"]
    assert below["median_time"] == pytest.approx(0.25, rel=1e-4)  # half-way to the first frame, whose error is 0.1
    assert between["times"] == pytest.approx([0.5 + 0.5 * (0.155 - 0.1) / 0.11] * 5, rel=1e-3)
    assert (never["median_time"], never["never"], never["times"]) == (None, 5, [None] * 5)
    json.dumps(found, allow_nan=False)


def test_streaming_over_any_batching_is_the_whole():
    data = generate("droplet2d", 5, 16, seed=1, frames=6)
    model = build_model("fno", OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=3), width=8)
    whole, parts = (profile(model, data, settings=EvaluationSettings(batch_size=size)) for size in (5, 2))
    for name in ("rmse", "relative_l2"):
        for field in ("all", "rho", "velocity_x"):
            np.testing.assert_allclose(parts[name][field], whole[name][field], rtol=1e-5)
    for kind in ("truth", "prediction", "error"):
        for field, spectrum in whole["spectra"][kind].items():
            np.testing.assert_allclose(parts["spectra"][kind][field], spectrum, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(parts["drift"]["prediction"]["mass"], whole["drift"]["prediction"]["mass"], rtol=1e-3)


def test_the_last_frame_is_the_metric_of_the_last_frame():
    data = generate("droplet2d", 3, 16, seed=1, frames=6)
    signature = OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=3)
    found = profile(Scaled(signature), data)
    truth = torch.as_tensor(np.asarray(data.values)).float()
    own = evaluate_fields(truth[:, :1], truth[:, 5:], grid=data.grid)
    assert found["relative_l2"]["all"][-1] == pytest.approx(own["relative_l2"], rel=1e-6)
    assert found["rmse"]["all"][-1] == pytest.approx(own["rmse"], rel=1e-6)


def test_spectra_of_a_single_wave():
    x = (np.arange(32) + 0.5) / 32
    wave = np.cos(2 * np.pi * 5 * x)
    data = Trajectories(
        np.broadcast_to(wave[None, None, :, None], (2, 4, 32, 1)).copy(),
        Grid.uniform((32,)),
        np.arange(4.0),
        (FieldSpec("u"),),
    )
    found = profile(Scaled(evolving((32,)), factor=0.5), data)["spectra"]
    assert found["times"] == [1.0, 2.0, 3.0]
    for frame, factor in ((0, 0.5), (1, 0.25), (2, 0.125)):
        truth, said, error = (np.array(found[kind]["u"][frame]) for kind in ("truth", "prediction", "error"))
        assert truth[5] == pytest.approx(0.5, rel=1e-6)
        assert said[5] == pytest.approx(0.5 * factor**2, rel=1e-6)
        assert error[5] == pytest.approx(0.5 * (1 - factor) ** 2, rel=1e-6)
        assert np.delete(said, 5).max() < 1e-12


def test_drift_of_a_leak_and_of_nothing():
    data = held(samples=3, frames=5)
    found = profile(Scaled(evolving(), shift=-0.25), data)["drift"]
    assert found["prediction"]["u"] == pytest.approx([0.25, 0.5, 0.75, 1.0], rel=1e-6)
    assert found["truth"]["u"] == pytest.approx([0.0] * 4, abs=1e-7)
    means = np.asarray(data.values)[:, 0].mean((1, 2))
    assert found["start"]["u"] == pytest.approx(math.sqrt((means**2).mean()), rel=1e-6)


@pytest.mark.parametrize(
    ("task", "resolution", "quantities"),
    [("cns1d", 32, ["mass", "momentum", "energy"]), ("droplet2d", 16, ["mass"])],
)
def test_solvers_conserve_what_the_table_says_and_persistence_too(task, resolution, quantities):
    coarse = {"min_cells": 32} if task == "cns1d" else {}
    data = generate(task, 2, resolution, seed=3, frames=13, params=coarse)
    facts = OperatorSignature(
        space_dims=len(data.grid.shape), history=10 if task == "cns1d" else 1, in_channels=3, out_channels=3
    )
    found = profile(Scaled(facts), data)["drift"]
    assert found["quantities"] == quantities
    for name in quantities:
        scale = max(found["start"].values())
        assert max(found["truth"][name]) < 1e-5 * scale  # single precision
        assert max(found["prediction"][name]) < 1e-5 * scale
    leaking = profile(Scaled(facts, factor=0.9), data)["drift"]
    assert leaking["prediction"]["mass"][0] == pytest.approx(0.1 * leaking["start"]["mass"], rel=1e-4)


def test_a_broken_field_is_not_outvoted_and_a_zero_field_is():
    growth = ErrorGrowth(["u", "v"], Grid.uniform((4,)))
    truth = torch.ones(2, 2, 4, 2)
    truth[1, :, :, 1] = 0.0
    said = 1.5 * truth
    said[0, 1, 2, 1] = torch.nan
    said[1, :, :, 1] = 7.0
    growth.add(said, truth)
    torch.testing.assert_close(
        growth.sample_errors(), torch.tensor([[0.5, torch.nan], [0.5, 0.5]]).double(), equal_nan=True
    )
    assert growth.passing_times([1.0, 2.0], [0.8])[0]["times"] == [1.0, math.inf]


def test_the_solver_itself_has_no_error_and_a_steady_task_no_time():
    data = generate("darcy2d", 2, 16, seed=0)
    facts = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True)
    found = profile(Solver("darcy2d", facts), data)
    assert found["relative_l2"]["pressure"][0] < 1e-6
    assert (found["thresholds"], found["drift"]) == (None, None)


def test_what_does_not_fit_is_refused():
    data = held(samples=2, frames=4)
    with pytest.raises(ShapeError, match="3 evolving fields on 2 axes"):
        profile(Scaled(evolving((8, 8), fields=3)), data)
    with pytest.raises(ConfigError, match="horizon of 1 to 3"):
        profile(Scaled(evolving()), data, 7)
    with pytest.raises(ConfigError, match="above 0"):
        profile(Scaled(evolving()), data, thresholds=[0.0])
    with pytest.raises(ShapeError, match="1 parameters"):
        profile(Scaled(replace(evolving(), num_params=1)), data)
