"""Zero-shot resolution: the same samples solved on every grid, and a refusal where weights change their meaning."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from known_operators import Scaled, Solver

from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError
from spectrakan.evaluation import EvaluationSettings, evaluate, require_capability
from spectrakan.fields import OperatorSignature
from spectrakan.models import MODELS, build_model

STEADY = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True)
LINE = OperatorSignature(space_dims=1, history=5, in_channels=1, out_channels=1, boundary=("periodic",))


def scores(model, data, resolutions, **options):
    return [evaluate(model, data, cells, **options) for cells in resolutions]


def test_the_solver_as_a_model_has_no_error_at_any_resolution():
    data = generate("darcy2d", 3, 16, seed=4)
    one = EvaluationSettings(batch_size=1)
    found = scores(Solver("darcy2d", STEADY), data, [8, 16, 32], samples=[0, 2], settings=one)
    assert [entry["resolution"] for entry in found] == [[8, 8], [16, 16], [32, 32]]
    assert [entry["data"] for entry in found] == ["solved", "given", "solved"]
    assert all(entry["metrics"]["relative_l2"] < 1e-6 for entry in found)
    assert all(entry["num_samples"] == 2 for entry in found)


def test_a_solver_in_time_has_no_error_at_any_resolution():
    data = generate("diffusion_reaction1d", 2, 32, seed=0, frames=12)
    found = scores(Solver("diffusion_reaction1d", LINE, step=0.01), data, [16, 32, 64])
    assert all(entry["horizon"] == 7 for entry in found)
    assert all(entry["metrics"]["relative_l2"] < 2e-6 for entry in found)


def test_a_known_relative_error_is_the_same_everywhere():
    data = generate("darcy2d", 2, 16, seed=4)
    found = scores(Solver("darcy2d", STEADY, factor=1.25), data, [8, 32])
    assert [entry["metrics"]["relative_l2"] for entry in found] == pytest.approx([0.25, 0.25], rel=1e-5)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_either_can_or_says_why_not(name):
    data = generate("darcy2d", 2, 16, seed=4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build_model(name, STEADY)
    require_capability(model, 16, 16)
    require_capability(model, 12, 16, force=True)
    assert all(entry["metrics"]["rmse"] >= 0 for entry in scores(model, data, [12, 16]))
    if MODELS[name].order is not None:
        require_capability(model, 12, 16)
        return
    with pytest.raises(ConfigError, match=f"{name} cannot be scored zero-shot at 12: it reads .* train it at 12"):
        require_capability(model, 12, 16)


def test_what_cannot_be_solved_anew_is_averaged_or_refused_with_a_remedy():
    data = replace(generate("darcy2d", 2, 16, seed=4), origin={})
    assert evaluate(Scaled(STEADY), data, 8)["data"] == "averaged"
    with pytest.raises(ConfigError, match="generate"):
        evaluate(Scaled(STEADY), data, 32)
