"""A quantity inside the model while the input moves in its ball: its value at the centre, and its Jacobians."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spectrakan.nn.pointwise import ACTIVATIONS, pointwise
from spectrakan.theory.slopes import slope_range
from spectrakan.theory.tangent import Linear, Tangent, nan_to_inf


class Stage:
    """One of the nested balls that a bound grows through, and how far every quantity can move in it.

    A quantity that moves at most at rate L_k in the ball of radius r_k is, at the edge of ball k, no further from
    its start than sum_{j <= k} (r_j - r_{j-1}) L_j: less than r_k L_k, because smaller balls have smaller rates.
    Every stage bounds the model's quantities in the same order, so a quantity is identified by its number.
    """

    def __init__(self, radius: float, before: Stage | None = None) -> None:
        self.radius, self._before = radius, before
        self._moved: list[Tensor] = []

    def moved(self, rate: Tensor, *, together: bool = False) -> Tensor:
        """How far the next quantity can be from its start, of the rate's shape.

        Two bounds hold, and the smaller is taken: entry by entry, or `together` where a rate is relative to a motion
        that all entries share, which is another one in each bound.
        """
        number, whole = len(self._moved), self.radius * rate
        if self._before is not None:
            grown = self._before._moved[number] + (self.radius - self._before.radius) * rate
            whole = (grown if grown.amax() <= whole.amax() else whole) if together else torch.minimum(grown, whole)
        self._moved.append(nan_to_inf(whole))
        return self._moved[-1]


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

    def interval(self) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds of each entry, `(dim,)` each; infinite where the value overflows."""
        reach, value = self.stage.moved(self.tangent.reach()), self.value.flatten()
        return -nan_to_inf(reach - value), nan_to_inf(value + reach)

    def activated(self, name: str) -> Signal:
        """Behind a nonlinearity."""
        function = torch.sigmoid if name == "sigmoid" else ACTIVATIONS[name][0]
        slopes = slope_range(name, *self.interval())
        return replace(self, value=function(self.value), tangent=self.tangent.multiplied(*slopes))

    def dense(self, layer: nn.Linear) -> Signal:
        """Behind a layer that acts on every cell alike."""
        value = pointwise(layer.weight, layer.bias, self.value[:, None])[:, 0]
        return replace(self, value=value, tangent=self.tangent.pointwise(layer.weight))

    def appended(self, constants: Tensor) -> Signal:
        """With more channels that do not move: `(more, *space)`."""
        more, value, tangent = constants.numel(), torch.cat([self.value, constants]), self.tangent
        middle, spread = F.pad(tangent.middle, (0, 0, 0, more)), F.pad(tangent.spread, (0, more, 0, more))
        return Signal(value, Tangent(middle, spread, F.pad(tangent.box, (0, more)), tuple(value.shape)), self.stage)

    def __add__(self, other: Signal) -> Signal:
        return replace(self, value=self.value + other.value, tangent=self.tangent + other.tangent)
