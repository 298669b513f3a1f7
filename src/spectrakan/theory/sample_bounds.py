"""All bounds of one model around one input: token, modulation, prediction, and the theorem's constants.

The ball is reached through nested ones (`Stage`). Rates hold between any two inputs of the last ball; how far a
quantity can come from its value at the input is the sum over balls of step times rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.models.amfno import with_params
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import channels_first
from spectrakan.nn.kan import KAN, SILU_LIPSCHITZ
from spectrakan.nn.token import GlobalToken
from spectrakan.theory.attention_bounds import CellRates, HeadBound, head_bound
from spectrakan.theory.kan_bounds import box_bound
from spectrakan.theory.prediction_bounds import prediction_rate
from spectrakan.theory.signal import Signal, Stage
from spectrakan.theory.tangent import Tangent, identity
from spectrakan.theory.theorem import Constants
from spectrakan.theory.token_bounds import summary_signal, token_signal
from spectrakan.theory.trunk_bounds import trunk_signal

LARGEST = 4096
"""Most numbers in the features of one sample, or in one input, for which sets of Jacobians are carried along."""


@dataclass(frozen=True)
class Rates:
    """Bounds in one ball: Euclidean sizes of token and modulation, largest entry of the prediction, over sup norm."""

    token: float
    modulation: float
    prediction: float


@dataclass(frozen=True)
class SampleBounds:
    """Certified numbers around one input; `change` counts from the input itself, `rates` between any two."""

    rates: Rates
    change: Rates
    heads: tuple[Constants, ...]


def fits(model: SpectraKAN, history: Tensor) -> bool:
    """Whether the features and inputs are few enough to be bounded through the trunk."""
    cells = history.shape[2:-1].numel()
    widest = model.config.factor if model.config.block == "residual" else 1
    return cells * model.config.width * widest <= LARGEST and history[0].numel() <= LARGEST


@torch.no_grad()
def bound_sample(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], radii: Sequence[float]
) -> SampleBounds:
    """Bounds around one normalised input `(1, history, *space, field)`; the model is in float64."""
    stage: Stage | None = None
    total = torch.zeros(3, dtype=torch.float64)
    heads: tuple[Constants, ...] = ()
    reached, rates = 0.0, torch.zeros(3, dtype=torch.float64)
    for radius in radii:
        stage = Stage(radius, stage)
        rates, heads = _bound_in(model, history, params, axes, stage)
        total += (radius - reached) * rates
        reached = radius
    change = torch.minimum(total / reached, rates)
    return SampleBounds(Rates(*rates.tolist()), Rates(*change.tolist()), heads)


@torch.no_grad()
def bound_token(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], radii: Sequence[float]
) -> tuple[float, float]:
    """Rate and change of the token alone, for fields of any size.

    Every pooled number moves no faster than the field's sup norm, so they take the place of the input.
    """
    token = _token_of(model)
    summary = token.summary(history, params, axes)[0]
    moving = summary.numel() - (0 if params is None else params.shape[1])
    stage: Stage | None = None
    total, reached, rate = 0.0, 0.0, 0.0
    for radius in radii:
        stage = Stage(radius, stage)
        signal = Signal(summary[:moving], identity((moving,)), stage)
        if params is not None:
            signal = signal.appended(params[0])
        rate = float(token_signal(token.network, signal).tangent.bound())
        total, reached = total + (radius - reached) * rate, radius
    return rate, min(total / reached, rate)


def _bound_in(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], stage: Stage
) -> tuple[Tensor, tuple[Constants, ...]]:
    network = _token_of(model)
    inputs = channels_first(history)
    field = Signal(inputs[:, 0], identity(tuple(inputs[:, 0].shape)), stage)
    summary = summary_signal(network, field, None if params is None else params[0], axes)
    token = token_signal(network.network, summary)
    gates = None if model.gate_map is None else _gates(model, token)
    if params is not None:
        field = field.appended(with_params(inputs, params)[inputs.shape[0] :, 0])
    features = trunk_signal(model.trunk, field, axes, gates)
    heads: tuple[Constants, ...] = ()
    if model.gml is None:
        modulation, bound = _broadcast(model, token)
    else:
        found = [head_bound(model.gml, head, token, features, axes) for head in range(model.gml.num_heads)]
        heads = tuple(_constants(model, head, summary, token, features) for head in range(model.gml.num_heads))
        modulation, bound = _together(found, heads)
    value = model._value(token.value[None], features.value[:, None], axes)
    if value is None:
        raise TypeError("a model with a token has a modulation")
    last = inputs[-model.signature.in_channels :, 0].flatten(1)
    prediction = prediction_rate(model, token, features, value[0], modulation, axes, last)
    return torch.stack([token.tangent.bound(), bound, prediction]), heads


def _token_of(model: SpectraKAN) -> GlobalToken:
    if model.global_token is None:
        raise TypeError("a model without a token has nothing to certify")
    return model.global_token


def _broadcast(model: SpectraKAN, token: Signal) -> tuple[Tangent, Tensor]:
    if model.broadcast is None:
        raise TypeError("a model without attention broadcasts its token")
    tangent = token.tangent.times(model.broadcast.weight)
    return tangent, tangent.bound()


def _together(found: Sequence[HeadBound], heads: Sequence[Constants]) -> tuple[Tangent, Tensor]:
    """All heads side by side; each bound is the smaller of the carried one and the theorem's."""
    bounds = [
        torch.minimum(each.bound, each.bound.new_tensor(head.covariance()))
        for each, head in zip(found, heads, strict=True)
    ]
    if len(found) == 1:
        return found[0].tangent, bounds[0]
    spreads = [len(found) * each.tangent.spread for each in found if each.tangent.spread is not None]
    boxes = [each.tangent.box for each in found if each.tangent.box is not None]
    middle = torch.cat([each.tangent.middle for each in found])
    tangent = Tangent(middle, torch.block_diag(*spreads), torch.cat(boxes), (middle.shape[0],))
    return tangent, torch.stack(bounds).norm()


def _gates(model: SpectraKAN, token: Signal) -> list[list[Signal]]:
    """Factors 1 + tanh(W t + b) / 2 of every layer and axis."""
    gate_map = model.gate_map
    if gate_map is None:
        return []
    turned = token.dense(gate_map.map).activated("tanh")
    half = turned.mapped(lambda values: values / 2).shifted(torch.ones_like(turned.value))
    gates, begin = [], 0
    for layer in gate_map.modes:
        row = []
        for count in layer:
            places = torch.arange(begin, begin + count)
            row.append(Signal(half.value[places], half.tangent.picked(places, (count,)), half.stage))
            begin += count
        gates.append(row)
    return gates


def _constants(model: SpectraKAN, head: int, summary: Signal, token: Signal, features: Signal) -> Constants:
    gml, stage = model.gml, features.stage
    if gml is None:
        raise TypeError("only attention has these constants")
    rows = slice(head * gml.attention_width, (head + 1) * gml.attention_width)
    weight, bias = gml.query.weight[rows], gml.query.bias[rows]
    query_rate = token.tangent.times(weight).bound()
    keys, values = CellRates.of(features, gml.key[head]), CellRates.of(features, gml.value[head])
    low, high = summary.interval()
    return Constants(
        M_q=float((weight @ token.value + bias).norm() + stage.moved(query_rate)),
        M_k=float(keys.largest(stage)),
        M_v=float(values.largest(stage)),
        L_k=float(keys.rates.amax()),
        L_v=float(values.rates.amax()),
        Lip_q=float(torch.linalg.matrix_norm(weight, ord=2)),
        L_KAN=_network_bound(model, low, high),
        L_P=float(summary.tangent.bound()),
        divisor=gml.divisor,
    )


def _network_bound(model: SpectraKAN, low: Tensor, high: Tensor) -> float:
    """L_KAN over the box of summaries; for the other kinds of token the same constant of theirs."""
    network = _token_of(model).network
    if isinstance(network, KAN):
        return float(box_bound(network, low[None], high[None])[0])
    return _plain_network_bound(network)


def _plain_network_bound(network: torch.nn.Module) -> float:
    """Product of the layers' norms: of an MLP with SiLU between them, or of nothing."""
    bound = 1.0
    for layer in network.modules():
        if isinstance(layer, torch.nn.Linear):
            bound *= float(torch.linalg.matrix_norm(layer.weight, ord=2))
        elif isinstance(layer, torch.nn.SiLU):
            bound *= SILU_LIPSCHITZ
    return bound
