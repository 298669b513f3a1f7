"""Exact ranges of nonlinearities and of their slopes over intervals.

Each function here rises and falls in a few monotone runs whose turning points are known, so its range over [a, b]
is spanned by its values at a, at b and at the turning points in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

SILU_TURN = 1.2784645427610738
"""SiLU falls up to minus this and rises after it."""
SILU_SLOPE_TURN = 2.3993572805154676
"""SiLU' has its lowest value at minus this and its highest at plus this."""
SILU_THIRD = 0.3083
"""Above sup |SiLU'''|; sup |SiLU''| is SiLU''(0) = 1/2."""
GELU_TURN = 0.7517915246935645
GELU_SLOPE_TURN = math.sqrt(2)


def silu_slope(x: Tensor) -> Tensor:
    """SiLU'(x) = s + x s (1 - s), s the logistic function."""
    share = x.sigmoid()
    return share + x * share * (1 - share)


def gelu_slope(x: Tensor) -> Tensor:
    """GELU'(x) = Phi(x) + x phi(x), with the normal distribution Phi and its density phi."""
    density = (-x.square() / 2).exp() / math.sqrt(2 * math.pi)
    slope: Tensor = torch.special.ndtr(x) + x * density
    return slope


def sigmoid_slope(x: Tensor) -> Tensor:
    """The logistic function's slope s (1 - s)."""
    share = x.sigmoid()
    return share * (1 - share)


def tanh_slope(x: Tensor) -> Tensor:
    """1 - tanh²."""
    return 1 - x.tanh().square()


Turning = tuple[Callable[[Tensor], Tensor], tuple[float, ...]]

VALUES: dict[str, Turning] = {
    "gelu": (F.gelu, (-GELU_TURN,)),
    "silu": (F.silu, (-SILU_TURN,)),
    "relu": (F.relu, ()),
    "sigmoid": (torch.sigmoid, ()),
    "tanh": (torch.tanh, ()),
}
"""Each nonlinearity and where it turns."""

SLOPES: dict[str, Turning] = {
    "gelu": (gelu_slope, (-GELU_SLOPE_TURN, GELU_SLOPE_TURN)),
    "silu": (silu_slope, (-SILU_SLOPE_TURN, SILU_SLOPE_TURN)),
    "sigmoid": (sigmoid_slope, (0.0,)),
    "tanh": (tanh_slope, (0.0,)),
}
"""Each slope and where it turns; the slope of ReLU jumps and is treated by itself."""


def value_range(name: str, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest value of a nonlinearity over [low, high], elementwise.

    >>> low, high = value_range("relu", torch.tensor(-1.0), torch.tensor(2.0))
    >>> float(low), float(high)
    (0.0, 2.0)
    """
    return _range(VALUES[name], low, high)


def slope_range(name: str, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest slope over [low, high], elementwise; ReLU counts both slopes at its kink."""
    if name == "relu":
        return (low > 0).to(low), (high >= 0).to(low)
    return _range(SLOPES[name], low, high)


def _range(turning: Turning, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    function, turns = turning
    ends = function(low), function(high)
    least, most = torch.minimum(*ends), torch.maximum(*ends)
    for turn in turns:
        inside = (low <= turn) & (turn <= high)
        value = function(torch.full_like(low, turn))
        least = torch.where(inside, torch.minimum(least, value), least)
        most = torch.where(inside, torch.maximum(most, value), most)
    return least, most
