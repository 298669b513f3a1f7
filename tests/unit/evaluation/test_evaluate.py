"""Scores of whole rollouts, on the grid of the data and on others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_operators import Scaled, Solver, evolving, held

from spectrakan.data.generate import generate
from spectrakan.data.regenerate import coarsen
from spectrakan.errors import ConfigError
from spectrakan.evaluation import evaluate
from spectrakan.fields import OperatorSignature

STEADY = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True)


def test_a_constant_bias_is_every_score():
    found = evaluate(Scaled(evolving(), shift=0.25), held(samples=3, frames=2))
    assert found["data"] == "given"
    for name in ("rmse", "max_error", "crmse", "brmse"):
        assert found["metrics"][name] == pytest.approx(0.25, rel=1e-5)


def test_the_horizon_asked_for_is_predicted_and_scored():
    found = evaluate(Scaled(evolving(), shift=1.0), held(samples=2, frames=6), horizon=3)
    assert (found["horizon"], found["times"]) == (3, [0.5, 1.0, 1.5])
    assert found["metrics_per_frame"]["rmse"] == pytest.approx([1.0, 2.0, 3.0])


@pytest.mark.parametrize("resolution", [8, 24, 32])
def test_generated_samples_are_solved_on_coarser_and_finer_grids(resolution):
    """Darcy's own solver as the model: no error where the data are solved there, a clear one where averaged."""
    data = generate("darcy2d", 2, 16, seed=4)
    found = evaluate(Solver("darcy2d", STEADY), data, resolution=resolution)
    assert (found["data"], found["resolution"]) == ("solved", [resolution, resolution])
    assert found["metrics"]["relative_l2"] < 1e-6
    if resolution < 16:
        averaged = evaluate(Solver("darcy2d", STEADY), replace(data, origin={}), resolution=resolution)
        assert averaged["data"] == "averaged"
        assert averaged["metrics"]["relative_l2"] > 1e-2


def test_samples_keep_their_numbers_on_other_grids():
    data = generate("darcy2d", 5, 16, seed=4)
    chosen = evaluate(Scaled(STEADY), data, resolution=32, samples=[3])
    alone = generate("darcy2d", 5, 32, seed=4)
    truth, medium = np.asarray(alone.values[3]), np.asarray(alone.inputs[3])
    expected = np.linalg.norm(truth - medium) / np.linalg.norm(truth)
    assert chosen["metrics"]["relative_l2"] == pytest.approx(float(expected), rel=1e-5)


def test_foreign_samples_cannot_be_refined_and_are_told_so():
    with pytest.raises(ConfigError, match="spectrakan generate TASK --resolution 64"):
        evaluate(Scaled(evolving()), held(samples=1, frames=3), resolution=64)
    coarse = coarsen(held(samples=1, frames=3), 4)
    assert float(np.asarray(coarse.values).mean()) == pytest.approx(
        float(np.asarray(held(samples=1, frames=3).values).mean())
    )
