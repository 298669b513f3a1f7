"""Rollouts against operators whose iterates are known in closed form."""

from __future__ import annotations

import pytest
import torch

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Grid, OperatorSignature
from spectrakan.models.operator import Operator
from spectrakan.models.rollout import rollout
from spectrakan.models.stages import Stages


class Fibonacci(Operator):
    """u_{t+1} = u_t + p u_{t-1}: needs both frames in the right order, and its parameter."""

    name = "fibonacci"

    def __init__(self, **changes):
        facts = {"space_dims": 1, "history": 2, "in_channels": 1, "out_channels": 1, "num_params": 1} | changes
        super().__init__(OperatorSignature(**facts), None, Stages(predict="direct", noise_level=0.0))
        self.calls = []

    def _forward(self, history, params, axes):
        self.calls.append(history.shape[0])
        return history[:, -1] + params[:, :, None] * history[:, -2]


def test_frames_follow_the_recurrence_and_parameters_stay_with_their_samples():
    x = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1).expand(2, 2, 4, 1)
    answer = rollout(Fibonacci(), x, 6, params=torch.tensor([[1.0], [2.0]]))
    assert answer.shape == (2, 6, 4, 1)
    assert answer[0, :, 0, 0].tolist() == [1, 2, 3, 5, 8, 13]
    assert answer[1, :, 0, 0].tolist() == [1, 3, 5, 11, 21, 43]  # Jacobsthal numbers


def test_units_are_physical_at_every_step():
    model = Fibonacci()
    model.input_units.set(mean=torch.tensor([0.0]), scale=torch.tensor([10.0]))
    x = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1).expand(1, 2, 4, 1)
    assert rollout(model, x, 3, params=torch.ones(1, 1))[0, :, 0, 0].tolist() == pytest.approx([1, 2, 3])


def test_pieces_give_the_same_frames_and_bound_the_batch(generator):
    model, x = Fibonacci(), torch.randn(5, 2, 6, 1, generator=generator)
    params = torch.randn(5, 1, generator=generator)
    whole = rollout(model, x, 4, params)
    model.calls.clear()
    pieces = rollout(model, x, 4, params, batch_size=2)
    assert torch.equal(whole, pieces)
    assert model.calls == [2] * 8 + [1] * 4


def test_gradients_flow_through_all_steps_only_when_asked():
    x = torch.zeros(1, 2, 4, 1, requires_grad=True)
    params = torch.ones(1, 1)
    assert not rollout(Fibonacci(), x, 5, params).requires_grad
    rollout(Fibonacci(), x, 5, params, gradients=True)[:, -1].sum().backward()
    assert x.grad[0, :, 0, 0].tolist() == [5, 8]  # F_5 and F_6: the fifth iterate is 5 u_{-1} + 8 u_0


def test_the_grid_reaches_the_operator():
    with pytest.raises(ShapeError, match="the grid has"):
        rollout(Fibonacci(), torch.zeros(1, 2, 4, 1), 1, torch.ones(1, 1), Grid.uniform((5,)))


@pytest.mark.parametrize("changes", [{"out_channels": 2}, {"steady": True}])
def test_what_cannot_be_fed_back_is_refused(changes):
    with pytest.raises(ShapeError, match="feeds outputs back"):
        rollout(Fibonacci(**changes), torch.zeros(1, 2, 4, 1), 2, torch.ones(1, 1))


def test_no_frames_are_no_rollout():
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        rollout(Fibonacci(), torch.zeros(1, 2, 4, 1), 0, torch.ones(1, 1))
