"""Attempts to break a bound: random pairs, and ascent by signs from many starts.

For a map F and a centre u the attacks look for
    change   max ||F(u + d) - F(u)|| / r                 over |d| <= r,
    slope    max ||F(p + d) - F(p - d)|| / (2 |d|)       over p in the ball and short d.
In the sup norm the best step of ascent goes to the corner that the gradient's signs name. What is found is reached
by real inputs, so every bound must lie above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.config import settings

Map = Callable[[Tensor], Tensor]
"""From a batch of inputs to a batch of outputs."""
Size = Callable[[Tensor], Tensor]
"""From a batch of differences to their sizes, `(batch,)`."""

SHORT = 1e-3
"""Length of the short steps, as a share of the radius."""


@settings
class AttackSettings:
    """How hard to try."""

    starts: int = 16
    """Random corners that ascent begins from."""
    steps: int = 12
    """Steps of ascent from each start."""
    pairs: int = 64
    """Random pairs of inputs in the ball."""
    seed: int = 0
    """Seed of starts and pairs."""


@dataclass(frozen=True)
class Attack:
    """The worst that was found, in units of output over units of input."""

    change: float
    slope: float

    def worse(self, other: Attack) -> Attack:
        """The worse of two, entry by entry."""
        return Attack(max(self.change, other.change), max(self.slope, other.slope))


def euclid(difference: Tensor) -> Tensor:
    """Euclidean size of each row."""
    sizes: Tensor = difference.flatten(1).norm(dim=1)
    return sizes


def largest(difference: Tensor) -> Tensor:
    """Largest entry of each row."""
    return difference.flatten(1).abs().amax(1)


def attack(function: Map, centre: Tensor, radius: float, size: Size, choices: AttackSettings) -> Attack:
    """Try to move `function` as far as possible from `centre` `(1, ...)`.

    >>> found = attack(lambda u: 3 * u, torch.zeros(1, 2).double(), 0.1, largest, AttackSettings())
    >>> round(found.change, 6), round(found.slope, 6)
    (3.0, 3.0)
    """
    source = torch.Generator().manual_seed(choices.seed)
    corners = _random(centre, choices.starts, source).sign()
    with torch.no_grad():
        start = function(centre)

    def from_centre(way: Tensor) -> Tensor:
        return size(function(centre + radius * way) - start) / radius

    change = _ascend(from_centre, corners, choices.steps)
    slope = change
    places = centre + (1 - SHORT) * radius * _random(centre, choices.starts, source)
    # The steepest place is often where the change is largest or at the centre itself.
    for place in (places, centre.expand_as(places)):
        slope = max(slope, _steepest(function, place, SHORT * radius, size, choices.steps, corners))
    slope = max(slope, _random_pairs(function, centre, radius, size, choices.pairs, source))
    return Attack(change, slope)


def _steepest(function: Map, place: Tensor, step: float, size: Size, steps: int, ways: Tensor) -> float:
    def along(way: Tensor) -> Tensor:
        return size(function(place + step * way) - function(place - step * way)) / (2 * step)

    return _ascend(along, ways, steps)


def _ascend(goal: Callable[[Tensor], Tensor], ways: Tensor, steps: int) -> float:
    best = 0.0
    for _ in range(steps):
        ways = ways.detach().requires_grad_()
        with torch.enable_grad():
            reached = goal(ways)
            (gradient,) = torch.autograd.grad(reached.sum(), ways)
        best = max(best, float(reached.detach().max()))
        corners = gradient.sign()
        ways = torch.where(corners == 0, ways.detach(), corners)
    with torch.no_grad():
        return max(best, float(goal(ways).max()))


@torch.no_grad()
def _random_pairs(
    function: Map, centre: Tensor, radius: float, size: Size, pairs: int, source: torch.Generator
) -> float:
    worst, chunk = 0.0, 64
    for begin in range(0, pairs, chunk):
        count = min(chunk, pairs - begin)
        left, right = (centre + radius * _random(centre, count, source) for _ in range(2))
        moved = size(function(left) - function(right)) / largest(left - right)
        worst = max(worst, float(moved.max()))
    return worst


def _random(like: Tensor, count: int, source: torch.Generator) -> Tensor:
    """Uniform numbers in [-1, 1], `count` of the shape of one input."""
    return 2 * torch.rand(count, *like.shape[1:], dtype=like.dtype, generator=source) - 1
