"""Modes of training, by gradients that are known in closed form: the operator multiplies by one number a."""

from __future__ import annotations

import pytest
import torch

from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages
from spectrakan.training.objective import Objective, horizon_at
from spectrakan.training.settings import TrainingSettings


class Scale(Operator):
    """u_{t+1} = a u_t."""

    name = "scale"

    def __init__(self, a=2.0):
        super().__init__(
            OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1),
            None,
            Stages(predict="direct", noise_level=0.0),
        )
        self.a = torch.nn.Parameter(torch.tensor(a))

    def _forward(self, history, params, axes):
        return self.a * history[:, -1]


def window(horizon):
    return Window(inputs=torch.ones(2, 1, 8, 1), targets=torch.zeros(2, horizon, 8, 1))


def slope(choices, horizon, **beside):
    model = Scale()
    value = Objective(model, choices)(window(horizon), horizon, **beside)
    value.backward()
    return value.item(), model.a.grad.item()


def settings(**choices):
    return TrainingSettings(loss="mse", **choices)


def test_one_step_differentiates_a_squared():
    assert slope(settings(), 1) == (4.0, 4.0)


@pytest.mark.parametrize("memory_saving", [False, True])
def test_autoregressive_differentiates_all_powers(memory_saving):
    choices = settings(mode="autoregressive", horizon=3, checkpoint_activations=memory_saving)
    # mean of a^2, a^4, a^6 and of 2a, 4a^3, 6a^5 at a = 2
    assert slope(choices, 3) == pytest.approx(((4 + 16 + 64) / 3, (4 + 32 + 192) / 3))


def test_pushforward_differentiates_the_last_steps_only():
    # With the first two steps taken as given, the third is a * 4, its square's slope 2 a 16.
    assert slope(settings(mode="pushforward", horizon=3), 3) == pytest.approx((64.0, 64.0))
    # With one step given, frames a 2 and a^2 2: mean of squares' slopes 2 a 4 and 4 a^3 4.
    choices = settings(mode="pushforward", horizon=3, gradient_steps=2)
    assert slope(choices, 3) == pytest.approx(((16 + 64) / 2, (16 + 128) / 2))


def test_noise_comes_from_its_generator_alone():
    def value(seed):
        return slope(settings(noise=0.5), 1, noise=torch.Generator().manual_seed(seed))[0]

    assert value(1) == value(1) != value(2)
    drawn = torch.randn(2, 1, 8, 1, generator=torch.Generator().manual_seed(1))
    assert value(1) == pytest.approx((2 * (1 + 0.5 * drawn)).square().mean().item())


def test_parameters_and_fields_reach_the_loss_at_unit_scale():
    model = Scale()
    model.input_units.set(mean=torch.tensor([1.0]), scale=torch.tensor([2.0]))
    data = Window(inputs=torch.full((1, 1, 8, 1), 3.0), targets=torch.full((1, 1, 8, 1), 1.0))
    # history (3 - 1) / 2 = 1, target 0, answer 2
    assert Objective(model, settings())(data, 1).item() == pytest.approx(4.0)


def test_the_horizon_grows_evenly_and_then_stays():
    choices = settings(mode="autoregressive", horizon=4, curriculum=0.5)
    assert [horizon_at(share, choices) for share in (0.0, 0.124, 0.126, 0.26, 0.4, 0.5, 1.0)] == [1, 1, 2, 3, 4, 4, 4]
    assert horizon_at(0.0, settings(mode="autoregressive", horizon=4)) == 4
