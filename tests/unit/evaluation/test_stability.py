"""Long rollouts: blow-ups at the frame that arithmetic says, and errors against a truth solved for as long."""

from __future__ import annotations

import json

import numpy as np
import pytest
from known_operators import Scaled, Solver, evolving, held

from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError
from spectrakan.evaluation import EvaluationSettings, stability
from spectrakan.fields import OperatorSignature

LINE = OperatorSignature(space_dims=1, history=5, in_channels=1, out_channels=1, boundary=("periodic",))


def first_beyond(values: np.ndarray, factor: float, limit: float) -> list[int]:
    """By hand: the first k with |factor^k u - middle| > limit * width in some cell."""
    low, high = values.min(), values.max()
    answers = []
    for start in values[:, 0]:
        k = 1
        while np.abs(factor**k * start - (low + high) / 2).max() <= limit * (high - low):
            k += 1
        answers.append(k)
    return answers


@pytest.mark.parametrize("factor", [1.5, 3.0])
def test_a_growing_operator_blows_up_at_a_predictable_frame(factor):
    data = held(samples=4, frames=4)
    found = stability(Scaled(evolving(), factor=factor), data, settings=EvaluationSettings(batch_size=3))
    expected = first_beyond(np.asarray(data.values), factor, 10.0)
    assert found["horizon"] == 15
    assert [entry["blow_up_frame"] for entry in found["samples"]] == expected
    assert [entry["blow_up_time"] for entry in found["samples"]] == pytest.approx([0.5 * k for k in expected])
    assert {entry["kind"] for entry in found["samples"]} == {"out of range"}
    assert found["blow_ups"] == 4
    assert found["frames_with_truth"] == 3  # these samples do not say how they were made
    assert found["median_relative_l2"] == pytest.approx([factor**k - 1 for k in (1, 2, 3)], rel=1e-5)


def test_an_overflow_is_not_finite():
    found = stability(Scaled(evolving(), factor=1e20), held(samples=2, frames=4), limit=1e60)
    assert {(entry["blow_up_frame"], entry["kind"]) for entry in found["samples"]} == {(2, "not finite")}
    assert found["largest_relative_l2"][1:] == [None, None]
    json.dumps(found, allow_nan=False)


def test_a_shrinking_operator_never_blows_up():
    found = stability(Scaled(evolving(), factor=0.5), held(samples=2, frames=4), factor=8)
    assert (found["blow_ups"], found["horizon"]) == (0, 24)
    assert all(entry["blow_up_frame"] is None for entry in found["samples"])


def test_generated_truth_is_solved_to_the_end_and_the_solver_stays_on_it():
    data = generate("diffusion_reaction1d", 2, 32, seed=0, frames=9)
    found = stability(Solver("diffusion_reaction1d", LINE, step=0.01), data)
    assert (found["training_horizon"], found["horizon"], found["frames_with_truth"]) == (4, 20, 20)
    assert found["blow_ups"] == 0
    assert max(found["largest_relative_l2"]) < 1e-5
    assert [len(entry["relative_l2"]) for entry in found["samples"]] == [5, 5]
    assert found["times"][-1] == pytest.approx(0.24)


def test_growth_of_error_against_the_longer_truth():
    """Persistence on Fisher-KPP: the error of the last frame is that of the state it stopped at."""
    data = generate("diffusion_reaction1d", 2, 32, seed=0, frames=9)
    found = stability(Scaled(LINE), data, samples=[1])
    longer = np.asarray(generate("diffusion_reaction1d", 2, 32, seed=0, frames=25).values)[1]
    expected = np.linalg.norm(longer[24] - longer[4]) / np.linalg.norm(longer[24])
    assert found["samples"][0]["sample"] == 1
    assert found["samples"][0]["relative_l2"][-1] == pytest.approx(float(expected), rel=1e-4)


def test_the_model_keeps_its_mode_and_nonsense_is_refused():
    model = Scaled(evolving())
    model.train()
    stability(model, held(samples=1, frames=3), factor=1)
    assert model.training
    with pytest.raises(ConfigError, match="a limit above"):
        stability(model, held(samples=1, frames=3), limit=0.1)
    steady = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True)
    with pytest.raises(ConfigError, match="a steady one"):
        stability(Scaled(steady), generate("darcy2d", 1, 16))
