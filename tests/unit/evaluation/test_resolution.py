"""Zero-shot resolution: the same samples solved on every grid, and a refusal where weights change their meaning."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from known_operators import Scaled, Solver

from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.evaluation import EvaluationSettings, resolution_scores
from spectrakan.fields import OperatorSignature
from spectrakan.models import MODELS, build_model

STEADY = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True)
LINE = OperatorSignature(space_dims=1, history=5, in_channels=1, out_channels=1, boundary=("periodic",))


def test_the_solver_as_a_model_has_no_error_at_any_resolution():
    data = generate("darcy2d", 3, 16, seed=4)
    found = resolution_scores(
        Solver("darcy2d", STEADY), data, [8, 16, 32], samples=[0, 2], settings=EvaluationSettings(batch_size=1)
    )
    assert [entry["resolution"] for entry in found["resolutions"]] == [[8, 8], [16, 16], [32, 32]]
    assert [entry["data"] for entry in found["resolutions"]] == ["solved", "given", "solved"]
    assert all(entry["metrics"]["relative_l2"] < 1e-6 for entry in found["resolutions"])
    assert all(entry["num_samples"] == 2 for entry in found["resolutions"])
    json.dumps(found, allow_nan=False)


def test_a_solver_in_time_has_no_error_at_any_resolution():
    data = generate("diffusion_reaction1d", 2, 32, seed=0, frames=12)
    model = Solver("diffusion_reaction1d", LINE, step=0.01)
    found = resolution_scores(model, data, [16, 32, 64])
    assert all(entry["horizon"] == 7 for entry in found["resolutions"])
    assert all(entry["metrics"]["relative_l2"] < 2e-6 for entry in found["resolutions"])


def test_a_known_relative_error_is_the_same_everywhere():
    data = generate("darcy2d", 2, 16, seed=4)
    found = resolution_scores(Solver("darcy2d", STEADY, factor=1.25), data, [8, 32], trained_at=8)
    assert [entry["metrics"]["relative_l2"] for entry in found["resolutions"]] == pytest.approx(
        [0.25, 0.25], rel=1e-5
    )
    assert [entry["ratio"] for entry in found["resolutions"]] == pytest.approx([1.0, 1.0], rel=1e-5)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_either_can_or_says_why_not(name):
    data = generate("darcy2d", 2, 16, seed=4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build_model(name, STEADY)
    if MODELS[name].order is not None:
        found = resolution_scores(model, data, [12, 16, 24])
        assert found["refinement"] == f"same operator, order {MODELS[name].order}"
        assert all(entry["metrics"]["rmse"] is not None for entry in found["resolutions"])
        return
    with pytest.raises(ConfigError, match=f"{name} cannot be scored zero-shot at 12: it reads .* train it at 12"):
        resolution_scores(model, data, [16, 12])
    found = resolution_scores(model, data, [16, 12], force=True)
    assert found["refinement"] == "runs only"
    assert len(found["resolutions"]) == 2


def test_what_cannot_be_solved_anew_is_refused_with_a_remedy():
    data = replace(generate("darcy2d", 2, 16, seed=4), origin={})
    for resolution in (8, 32):
        with pytest.raises(ConfigError, match="generate"):
            resolution_scores(Scaled(STEADY), data, [resolution])


def test_a_grid_too_small_for_the_model_names_the_grid():
    class Choosy(Scaled):
        def _forward(self, history, params, axes):
            if history.shape[2] < 16:
                raise ShapeError("expected at least 16 cells")
            return super()._forward(history, params, axes)

    with pytest.raises(ShapeError, match="does not take 8 x 8 cells: expected at least 16"):
        resolution_scores(Choosy(STEADY), generate("darcy2d", 1, 16), [8])
