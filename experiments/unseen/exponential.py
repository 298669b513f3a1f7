"""Exponential time differencing of order 4 for equations with a diagonal linear part.

    v_t = c v + N(v),     phi_0(z) = exp(z),     phi_{k+1}(z) = (phi_k(z) - 1 / k!) / z

The scheme of Cox and Matthews: exact for N = 0, of order 4 otherwise. `c` is real and may have any size, so that a
stiff linear part sets no limit on the step. phi_k is evaluated as its mean over a circle, which avoids the difference
of nearly equal numbers at small z (Kassam and Trefethen).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

_CIRCLE_POINTS = 32
Rate = Callable[[Tensor], Tensor]
"""The nonlinear part N of modes."""


def phi(order: int, z: Tensor) -> Tensor:
    """phi_order of real numbers.

    >>> [round(float(phi(k, torch.zeros(1, dtype=torch.float64))), 12) for k in (1, 2, 3)]
    [1.0, 0.5, 0.166666666667]
    """
    # Half of the circle of radius 1: the other half has the conjugate values.
    angle = math.pi * (torch.arange(_CIRCLE_POINTS, dtype=torch.float64) + 0.5) / _CIRCLE_POINTS
    points = z.double()[..., None] + torch.polar(torch.ones_like(angle), angle)
    value = points.exp()
    for k in range(order):
        value = (value - 1 / math.factorial(k)) / points
    return value.real.mean(-1)


class ExponentialRungeKutta:
    """Steps of one length for modes of any shape that `linear` broadcasts to."""

    def __init__(self, linear: Tensor, step: float, rate: Rate) -> None:
        z = step * linear
        first, second, third = (step * phi(order, z) for order in (1, 2, 3))
        self.rate, self.decay, self.half_decay = rate, z.exp(), (z / 2).exp()
        self.half = step / 2 * phi(1, z / 2)
        self.weights = (first - 3 * second + 4 * third, 2 * second - 4 * third, 4 * third - second)

    def __call__(self, modes: Tensor) -> Tensor:
        """The modes one step later."""
        start, carried = self.rate(modes), self.half_decay * modes
        middle = carried + self.half * start
        slope = self.rate(middle)
        again = self.rate(carried + self.half * slope)
        end = self.rate(self.half_decay * middle + self.half * (2 * again - start))
        outer, inner, last = self.weights
        return self.decay * modes + outer * start + inner * (slope + again) + last * end


def modes_at(modes: Tensor, times: Sequence[float], longest: float, linear: Tensor, rate: Rate) -> Iterator[Tensor]:
    """The modes at increasing times, from time 0 on, by equal steps of at most `longest` between two of them."""
    schemes: dict[float, ExponentialRungeKutta] = {}
    now = 0.0
    for time in times:
        count = math.ceil((time - now) / longest - 1e-9)
        if count > 0:
            step = round((time - now) / count, 12)
            advance = schemes.setdefault(step, ExponentialRungeKutta(linear, step, rate))
            for _ in range(count):
                modes = advance(modes)
        now = time
        yield modes
