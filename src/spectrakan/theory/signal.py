"""A quantity inside the model while the input moves in its ball: its value at the centre, and its Jacobians."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spectrakan.nn.activation import ACTIVATIONS
from spectrakan.nn.embedding import pointwise
from spectrakan.theory.slopes import slope_range
from spectrakan.theory.tangent import Linear, Tangent


class Stage:
    """One of the nested balls that a bound grows through, and how far every quantity can have moved in it.

    A quantity that moves at most at rate L_k in the ball of radius r_k is, at the edge of ball k, no further from
    its start than sum_{j <= k} (r_j - r_{j-1}) L_j: less than r_k L_k, for the smaller balls have smaller rates.
    The model is gone through in the same order at every stage, so quantities are known by their number.
    """

    def __init__(self, radius: float, before: Stage | None = None) -> None:
        self.radius, self._before = radius, before
        self._moved: list[Tensor] = []

    def moved(self, rate: Tensor) -> Tensor:
        """How far the next quantity can be from its start, of the rate's shape."""
        number = len(self._moved)
        if self._before is None:
            total = self.radius * rate
        else:
            earlier = self._before._moved[number]
            total = earlier + (self.radius - self._before.radius) * rate
            total = torch.minimum(total, self.radius * rate)
        self._moved.append(total)
        return total


@dataclass(frozen=True)
class Signal:
    """A value at the centre of the ball and all Jacobians over the ball."""

    value: Tensor
    tangent: Tangent
    stage: Stage

    def mapped(self, linear: Linear) -> Signal:
        """Behind a linear map of fields `(channel, batch, *space)`."""
        value = linear(self.value[:, None])[:, 0]
        return replace(self, value=value, tangent=self.tangent.through(linear))

    def shifted(self, bias: Tensor) -> Signal:
        """Plus a constant for each channel."""
        return replace(self, value=self.value + bias.view(-1, *[1] * (self.value.ndim - 1)))

    def interval(self) -> tuple[Tensor, Tensor]:
        """What each entry stays between, `(dim,)` each."""
        reach = self.stage.moved(self.tangent.reach())
        return self.value.flatten() - reach, self.value.flatten() + reach

    def activated(self, name: str) -> Signal:
        """Behind a nonlinearity."""
        function = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}.get(name) or ACTIVATIONS[name][0]
        slopes = slope_range(name, *self.interval())
        return replace(self, value=function(self.value), tangent=self.tangent.multiplied(*slopes))

    def dense(self, layer: nn.Linear) -> Signal:
        """Behind a layer that acts on every cell alike."""
        value = pointwise(layer.weight, layer.bias, self.value[:, None])[:, 0]
        return replace(self, value=value, tangent=self.tangent.pointwise(layer.weight))

    def scaled_by(self, factor: Signal, places: Tensor) -> Signal:
        """Entry i times entry `places[i]` of a vector: D(xy) = y Dx + x Dy, with x and y in their intervals."""
        low, high = (end[places] for end in factor.interval())
        tangent = self.tangent.multiplied(low, high) + self.moved_by(factor, places)
        by = factor.value.flatten()[places].view(self.value.shape)
        return replace(self, value=self.value * by, tangent=tangent)

    def moved_by(self, factor: Signal, places: Tensor) -> Tangent:
        """X Dy alone."""
        return factor.tangent.picked(places, self.tangent.shape).multiplied(*self.interval())

    def appended(self, constants: Tensor) -> Signal:
        """With more channels that do not move: `(more, *space)`."""
        more = constants.numel()
        tangent = self.tangent
        middle = F.pad(tangent.middle, (0, 0, 0, more))
        spread = None if tangent.spread is None else F.pad(tangent.spread, (0, more, 0, more))
        box = None if tangent.box is None else F.pad(tangent.box, (0, more))
        value = torch.cat([self.value, constants])
        return Signal(value, Tangent(middle, spread, box, tuple(value.shape)), self.stage)

    def __add__(self, other: Signal) -> Signal:
        return replace(self, value=self.value + other.value, tangent=self.tangent + other.tangent)
