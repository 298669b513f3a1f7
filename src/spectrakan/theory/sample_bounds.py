"""All bounds of one model around one input: token, modulation, prediction, and the theorem's constants.

The ball is reached through nested ones (`Stage`). Rates hold between any two inputs of the last ball; the distance of
a quantity from its value at the input is at most the sum over balls of step times rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import channels_first, with_params
from spectrakan.theory.attention_bounds import attention_bound
from spectrakan.theory.network_bounds import summary_signal, token_signal, trunk_signal
from spectrakan.theory.prediction_bounds import prediction_rate
from spectrakan.theory.signal import Signal, Stage
from spectrakan.theory.tangent import Tangent, nan_to_inf
from spectrakan.theory.theorem import Constants, certified_constants

LARGEST = 4096
"""Most numbers in the features of one sample, or in one input, for which sets of Jacobians are propagated."""
QUANTITIES = ("token", "modulation", "prediction")


@dataclass(frozen=True)
class SampleBounds:
    """Certified numbers around one input; `change` counts from the input itself, `rates` between any two.

    By quantity: Euclidean norms of token and modulation, largest entry of the prediction, over the sup norm.
    """

    rates: dict[str, float]
    change: dict[str, float]
    constants: Constants | None = None
    """Of the theorem, where the model has attention."""


def fits(model: SpectraKAN, history: Tensor) -> bool:
    """Whether the features and inputs are few enough for bounds through the trunk."""
    cells = history.shape[2:-1].numel()
    widest = model.config.mlp_ratio if model.trunk.residual else 1
    return cells * model.config.width * widest <= LARGEST and history[0].numel() <= LARGEST


@torch.no_grad()
def bound_sample(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], radii: Sequence[float]
) -> SampleBounds:
    """Bounds around one normalised input `(1, history, *space, field)`; the model is in float64."""
    network = model._need_token()
    inputs, factors = (channels_first(model.decayed(part)) for part in (history, torch.ones_like(history)))
    last = channels_first(history[:, -1:])[:, 0].flatten(1)
    constants: list[Constants] = []

    def bound_in(stage: Stage) -> Tensor:
        field = Signal(inputs[:, 0], Tangent.exact(torch.diag(factors.flatten()), inputs[:, 0].shape), stage)
        summary = summary_signal(network, field, None if params is None else params[0], axes)
        token = token_signal(network.network, summary)
        if params is not None:
            field = field.appended(with_params(inputs, params)[len(inputs) :, 0])
        features = trunk_signal(model.trunk, field, axes)
        value = cast(Tensor, model._value(token.value[None], features.value[:, None], axes))
        if model.gml is not None:
            tangent, bound = attention_bound(model.gml, token, features, axes)
            constants.append(certified_constants(network.network, model.gml, summary, token, features))
            bound = bound.clamp_max(constants[-1].covariance())
        else:
            tangent = token.tangent.times(cast(nn.Linear, model.broadcast).weight)
            bound = tangent.bound()
        prediction = prediction_rate(model, features, value[0], tangent, axes, last)
        return torch.stack([token.tangent.bound(), bound, prediction])

    rates, change = (dict(zip(QUANTITIES, part.tolist(), strict=True)) for part in _grown(radii, bound_in))
    return SampleBounds(rates, change, constants[-1] if constants else None)


@torch.no_grad()
def bound_token(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], radii: Sequence[float]
) -> SampleBounds:
    """Rate and change of the token alone, for fields of any size.

    A pooled number moves at most `gain` times as fast as the field's sup norm, so it takes the place of the input.
    """
    token = model._need_token()
    summary, gain = token.summary(model.decayed(history), params, axes)[0], token.gain(axes)
    moving = summary.numel() - (0 if params is None else params.shape[1])

    def bound_in(stage: Stage) -> Tensor:
        signal = Signal(summary[:moving], Tangent.exact(torch.eye(moving, dtype=summary.dtype), (moving,)), stage)
        signal = signal if params is None else signal.appended(params[0])
        return token_signal(token.network, signal).tangent.bound()

    rate, change = _grown([gain * radius for radius in radii], bound_in)
    return SampleBounds({"token": gain * float(rate)}, {"token": gain * float(change)})


def _grown(radii: Sequence[float], bound_in: Callable[[Stage], Tensor]) -> tuple[Tensor, Tensor]:
    """Rates in the last of nested balls, and changes over its radius: the sum of step times rate."""
    stage, rates, total = None, torch.zeros(()), torch.zeros(())
    for radius in radii:
        step = radius - (0.0 if stage is None else stage.radius)
        stage = Stage(radius, stage)
        rates = nan_to_inf(bound_in(stage))
        total = total + step * rates
    return rates, torch.minimum(total / radii[-1], rates)
