"""Attempts to break a bound: random pairs, and ascent by signs from many starts.

For a map F and a centre u the attacks search for
    change   max ||F(u + d) - F(u)|| / r                 over |d| <= r,
    slope    max ||DF(p) w||                             over p in the ball and |w| <= 1,
and the quotients of random pairs count as slopes too. A slope is computed as ||DF(p)^T v||_1 for a v of dual norm 1.
Every value found is attained, so every bound must lie above it: the rounding error of a difference or slope, `SAFETY`
times its largest change over inputs that differ by a few units in the last place, or by `BESIDE`, is subtracted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.config import settings
from spectrakan.theory.parts import Map

Size = Callable[[Tensor], Tensor]
"""From a batch of differences to their norms, `(batch,)`."""

PROBE = 1e-6
"""Step that a direction of steepest slope is estimated with."""
SAFETY = 8
"""Factor between the rounding errors that are measured and those that are allowed for."""
BESIDE = 2.0**-26
"""Distance of inputs whose slopes differ by rounding only: so far that features much larger than inputs move too."""
ULPS = 4
"""Distance, in units in the last place, of inputs that differ by rounding only."""


@settings
class AttackSettings:
    """Effort of the attacks."""

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


def euclid(difference: Tensor) -> Tensor:
    """Euclidean norm of each row."""
    sizes: Tensor = difference.flatten(1).norm(dim=1)
    return sizes


def largest(difference: Tensor) -> Tensor:
    """Largest entry of each row."""
    return difference.flatten(1).abs().amax(1)


def attack(function: Map, centre: Tensor, radius: float, size: Size, config: AttackSettings) -> Attack:
    """Try to move `function` as far as possible from `centre` `(1, ...)`; values that overflow count as zero.

    >>> found = attack(lambda u: 3 * u, torch.zeros(1, 2).double(), 0.1, largest, AttackSettings())
    >>> round(found.change, 6), round(found.slope, 6)
    (3.0, 3.0)
    """
    source = torch.Generator().manual_seed(config.seed)
    target = _Target(function, centre, radius, size, source)
    corners = target.random(config.starts).sign()
    change = target.largest_change(corners, config.steps)
    # The steepest point is often the centre itself.
    points = torch.cat([centre + radius * target.random(config.starts), centre.expand_as(corners)])
    slope = target.steepest(points, corners.repeat(2, *[1] * (corners.ndim - 1)), config.steps)
    return Attack(change, max(change, slope, target.random_pairs(config.pairs)))


class _Target:
    """A map on a ball, and the rounding error of its differences."""

    def __init__(self, function: Map, centre: Tensor, radius: float, size: Size, source: torch.Generator) -> None:
        self.function, self.centre, self.radius, self.size, self.source = function, centre, radius, size, source
        unit = torch.finfo(centre.dtype).eps
        self.ulps = ULPS * unit * max(1.0, float(centre.abs().amax()))
        with torch.no_grad():
            self.start = function(centre)
            moved = _finite(size(function(centre + self.ulps * self.random(8)) - self.start))
            self.rounding = SAFETY * float(moved.amax() + unit * _finite(size(self.start)).amax())

    def random(self, count: int) -> Tensor:
        """Uniform numbers in [-1, 1], `count` of the shape of one input."""
        return 2 * torch.rand(count, *self.centre.shape[1:], dtype=self.centre.dtype, generator=self.source) - 1

    def largest_change(self, directions: Tensor, steps: int) -> float:
        """Ascent over corners of the ball."""
        best = 0.0
        for _ in range(steps + 1):
            directions = directions.detach().requires_grad_()
            with torch.enable_grad():
                points = self.centre + self.radius * directions
                reached = self.size(self.function(points) - self.start)
                (gradient,) = torch.autograd.grad(reached.sum(), directions)
            away = largest(points.detach() - self.centre).clamp_min(self.radius)
            best = max(best, float(_finite((reached.detach() - self.rounding) / away).amax()))
            directions = _turned(directions.detach(), gradient)
        return best

    def steepest(self, points: Tensor, directions: Tensor, steps: int) -> float:
        """Ascent over directions w and the functionals v that measure DF w, at fixed points."""
        best, step = 0.0, PROBE * max(1.0, float(points.abs().amax()))
        beside = points + BESIDE * max(1.0, float(points.abs().amax())) * self.random(len(points))
        for _ in range(steps):
            with torch.no_grad():
                moved = self.function(points + step * directions) - self.function(points - step * directions)
            with torch.enable_grad():
                moved.requires_grad_()
                # The gradient of a norm has dual norm 1, and is the functional that measures its argument.
                (functional,) = torch.autograd.grad(self.size(moved).sum(), moved)
            gradient = self._pulled(functional, points)
            slopes = gradient.abs().flatten(1).sum(1)
            if float(_finite(slopes).amax()) > best:
                # Of all points, because at some of them rounding happens to change nothing.
                errors = (self._pulled(functional, beside) - gradient).abs().flatten(1).sum(1)
                best = max(best, float(_finite(slopes).amax() - SAFETY * _finite(errors).amax()))
            directions = _turned(directions, gradient)
        return best

    def _pulled(self, functional: Tensor, points: Tensor) -> Tensor:
        """DF(p)^T v."""
        points = points.detach().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad((self.function(points) * functional).sum(), points)
        return gradient

    @torch.no_grad()
    def random_pairs(self, pairs: int) -> float:
        """Quotients of pairs of inputs, 64 pairs at once."""
        worst, chunk = 0.0, 64
        for begin in range(0, pairs, chunk):
            count = min(chunk, pairs - begin)
            left, right = (self.centre + self.radius * self.random(count) for _ in range(2))
            moved = self.size(self.function(left) - self.function(right)) - self.rounding
            worst = max(worst, float(_finite(moved / largest(left - right)).amax()))
        return worst


def _turned(directions: Tensor, gradient: Tensor) -> Tensor:
    """The corner that the gradient's signs give; entries without a gradient stay."""
    corners = torch.nan_to_num(gradient, nan=0.0).sign()
    return torch.where(corners == 0, directions, corners)


def _finite(values: Tensor) -> Tensor:
    return torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
