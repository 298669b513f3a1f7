"""Long rollouts: errors and blow-ups of operators whose predictions are known."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.execution import long_rollout
from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages

pytestmark = pytest.mark.filterwarnings("ignore:.*never fitted to data")


class Multiply(Operator):
    """u_next = factor u."""

    name = "multiply"

    def __init__(self, factor: float) -> None:
        signature = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
        super().__init__(signature, None, Stages(predict="direct", noise_level=0.0))
        self.factor = factor

    def _forward(self, history, params, axes):
        return self.factor * history[:, -1]


@pytest.fixture
def waves() -> Trajectories:
    wave = np.sin(2 * np.pi * (np.arange(16) + 0.5) / 16)
    decay = 0.9 ** np.arange(11)
    values = (decay[None, :, None, None] * wave[None, None, :, None]).repeat(3, axis=0)
    return Trajectories(values, Grid.uniform((16,)), np.arange(11.0), (FieldSpec("u"),))


def test_errors_grow_as_the_factors_say(waves: Trajectories):
    found = long_rollout(Multiply(0.99), waves, horizon=2)
    expected = [(0.99 / 0.9) ** step - 1 for step in range(1, 11)]
    assert found["relative_l2"] == pytest.approx(expected, rel=1e-4)
    assert found["growth"] == pytest.approx(expected[-1] / expected[1], rel=1e-4)
    assert (found["blown_up"], found["num_samples"], found["horizon"]) == (0, 3, 10)


@pytest.mark.parametrize("factor", [4.0, float("nan")])
def test_what_leaves_all_bounds_has_blown_up(waves: Trajectories, factor: float):
    found = long_rollout(Multiply(factor), waves, horizon=2)
    assert found["blown_up"] == 3


def test_the_exact_operator_makes_no_error(waves: Trajectories):
    found = long_rollout(Multiply(0.9), waves, horizon=2)
    assert max(found["relative_l2"]) < 1e-5
    assert found["blown_up"] == 0
