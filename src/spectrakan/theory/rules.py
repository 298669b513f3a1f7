"""What each nonlinear operation brings to a certificate: its linear part at the centre, and a bound of the rest.

A node f has inputs h that move, at most by d from their values h_0 at the centre while the network's input moves in
its ball, and at most by L |u - u'| between two inputs of the ball. With l the linear part at the centre a rule bounds
    width    |f(h) - f(h_0) - l (h - h_0)| <= w                 from the centre to anywhere in the ball,
    rate     |f(h) - f(h') - l (h - h')|   <= k |u - u'|        between any two inputs of it.
Functions of single numbers also have factors: the rest is at most D |h - h_0|, K |h - h'|, and B (h - h_0)² / 2.
Proofs are in docs/theory.md. Shapes: as in the model; the batch of a `Motion` counts radii of balls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from spectrakan.nn.kan import KANLayer
from spectrakan.theory.norms import nan_to_inf
from spectrakan.theory.slopes import CURVATURES, FUNCTIONS, EdgePieces, Range, enclose, slope_at, slope_range


@dataclass(frozen=True)
class Motion:
    """An input of a node in balls of several radii: value at the centre, distance d from it, rate L."""

    centre: Tensor
    reach: Tensor
    rate: Tensor

    def interval(self) -> Range:
        """The values that the input can take."""
        return -nan_to_inf(self.reach - self.centre), nan_to_inf(self.centre + self.reach)


@dataclass(frozen=True)
class Rest:
    """What a node's linear part leaves: `width` w and `rate` k; `factors` D, K and B where they exist."""

    width: Tensor
    rate: Tensor
    factors: tuple[Tensor, Tensor, Tensor] | None = None


class Rule:
    """An operation with inputs that vary, given at the centre."""

    def __init__(self, out: Tensor, *centres: Tensor) -> None:
        self.out, self.centres = out, centres

    def linear(self, *changes: Tensor) -> Tensor:
        """The linear part, of changes of the inputs."""
        raise NotImplementedError

    def rest(self, *motions: Motion) -> Rest:
        """Bounds of what the linear part leaves."""
        raise NotImplementedError


class Curve(Rule):
    """A function of every number by itself, whose slope and second derivative have known ranges.

    The rest is the integral of f' - l over [h_0, h]: at most sup |f' - l| |h - h_0| and sup |f''| (h - h_0)² / 2.
    """

    def __init__(self, name: str, centre: Tensor) -> None:
        super().__init__(FUNCTIONS[name](centre), centre)
        self.name, self.slope = name, slope_at(name, centre)

    def linear(self, *changes: Tensor) -> Tensor:
        """Slope times change."""
        return self.slope * changes[0]

    def rest(self, *motions: Motion) -> Rest:
        """By slopes and second derivatives over the interval."""
        (motion,) = motions
        steep = torch.stack([end - self.slope for end in slope_range(self.name, *motion.interval())]).abs().amax(0)
        steep = factor = nan_to_inf(steep)
        bend = torch.full_like(steep, torch.inf)
        if self.name in CURVATURES:
            bend = nan_to_inf(torch.stack(slope_range(self.name, *motion.interval(), table=CURVATURES)).abs().amax(0))
            factor = torch.minimum(steep, nan_to_inf(bend * motion.reach / 2))
        return Rest(factor * motion.reach, steep * motion.rate, (factor, steep, bend))


class Product(Rule):
    """A bilinear operation of two inputs that vary: the rest is the product of their changes."""

    def __init__(self, operation: Callable[[Tensor, Tensor], Tensor], first: Tensor, second: Tensor) -> None:
        super().__init__(operation(first, second), first, second)
        self.operation = operation

    def linear(self, *changes: Tensor) -> Tensor:
        """Each change times the other input."""
        first, second = self.centres
        return self.operation(changes[0], second) + self.operation(first, changes[1])

    def rest(self, *motions: Motion) -> Rest:
        """The product of the changes."""
        one, two = motions
        rate = self.operation(one.reach, two.rate) + self.operation(one.rate, two.reach)
        return Rest(self.operation(one.reach, two.reach), rate)


class Edges(Rule):
    """A KAN layer `(in, batch)` -> `(out, batch)`: slopes of its edges are enclosed on intervals."""

    def __init__(self, layer: KANLayer, pieces: EdgePieces, centre: Tensor) -> None:
        inner = centre.clone().requires_grad_()
        with torch.enable_grad():
            out = type(layer).feature_major(layer, inner)
            rows = [torch.autograd.grad(row.sum(), inner, retain_graph=True)[0][:, 0] for row in out]
        super().__init__(out.detach(), centre)
        self.slopes, self.pieces = torch.stack(rows), pieces

    def linear(self, *changes: Tensor) -> Tensor:
        """Slopes times changes."""
        return self.slopes @ changes[0]

    def rest(self, *motions: Motion) -> Rest:
        """By the slopes of every edge over its interval."""
        (motion,) = motions
        least, most = enclose(self.pieces, *motion.interval(), 1)
        own = self.slopes[..., None]
        steep = torch.maximum((least - own).abs(), (most - own).abs())
        return Rest((steep * motion.reach).sum(1), (steep * motion.rate).sum(1))


class Pool(Rule):
    """Attention: sum_y alpha_y v_y with alpha the softmax of scores `(batch, heads, N)`, v `(batch, N, channel)`."""

    def __init__(self, scores: Tensor, values: Tensor) -> None:
        self.weights = scores.softmax(-1)
        super().__init__(self.weights @ values, scores, values)
        self.centred = values[:, None] - self.out[:, :, None]
        """v - mean, `(batch, heads, N, channel)`."""

    def linear(self, *changes: Tensor) -> Tensor:
        """E[dv] + Cov(ds, v)."""
        scores, values = changes
        return self.weights @ values + torch.einsum("bhn,hnc->bhc", self.weights * scores, self.centred[0])

    def rest(self, *motions: Motion) -> Rest:
        """By boxes of the weights."""
        scores, values = motions
        weights, away = self.weights, self.centred.abs()
        box = WeightBox.around(scores)
        moved = values.reach[:, None].expand(-1, weights.shape[1], -1, -1)
        change = box.change[..., None]
        beyond = box.beyond[..., None]
        first = (beyond * away).sum(2) + (change * moved).sum(2)
        # For large balls the whole change, plus the linear part's, is the better bound.
        sizes = scores.reach + (weights * scores.reach).sum(-1, keepdim=True)
        line = (weights[..., None] * moved).sum(2) + ((weights * sizes)[..., None] * away).sum(2)
        whole = torch.minimum(box.mean(away + moved), (change * away).sum(2) + box.mean(moved)) + line
        width = torch.minimum(nan_to_inf(first), nan_to_inf(whole))
        # Derivatives: E'[Dv] - E[Dv], then Cov'(Ds, v) - Cov(Ds, v), then Cov'(Ds, v' - v), which vanishes with all
        # weights but one: counted from the heaviest cell or from zero.
        pace, speed = values.rate[:, None].expand_as(moved), scores.rate[..., None]
        rate = (change * (pace + (speed + box.mean(speed)[:, :, None]) * away)).sum(2)
        heaviest = weights.argmax(-1, keepdim=True).expand(speed.shape[0], -1, -1)[..., None]
        others = (speed + speed.gather(2, heaviest)).scatter(2, heaviest, 0.0)
        by_others = box.mean(others * (moved + box.mean(moved)[:, :, None]))
        by_zero = box.mean(speed * moved) + box.mean(speed) * box.mean(moved)
        rate = rate + torch.minimum(by_others, by_zero)
        return Rest(width, rate)


@dataclass(frozen=True)
class WeightBox:
    """Softmax weights over the ball, `(radii, heads, N)` each: bounds, their change, and what is not linear in it."""

    low: Tensor
    high: Tensor
    change: Tensor
    beyond: Tensor

    @classmethod
    def around(cls, scores: Motion) -> WeightBox:
        """Weights whose scores move as given; alpha_y is largest where only s_y is high.

        >>> still = torch.zeros(1, 1, 2).double()
        >>> box = WeightBox.around(Motion(still, still + 1, still))
        >>> torch.allclose(box.high, torch.tensor([2.0, 2.0]).double().sigmoid())
        True
        """
        low, high = scores.interval()
        weights = scores.centre.softmax(-1)
        least, most = (_one_against_others(*ends) for ends in ((low, high), (high, low)))
        # Undefined where scores have no finite interval: a weight is then any number of [0, 1].
        least = torch.minimum(least.nan_to_num(0.0), weights) * (1 - 1e-12)
        most = torch.maximum(most.nan_to_num(1.0), weights) * (1 + 1e-12)
        box = cls(least, most, torch.maximum(most - weights, weights - least), most)
        sizes = scores.reach
        # log(alpha' / alpha) = t - nu with t = ds - E[ds] and 0 <= nu <= Var / 2 under some weights of the box.
        half = box.mean(sizes.square()[..., None])[..., 0, None] / 2
        around = sizes + (weights * sizes).sum(-1, keepdim=True)
        grown = torch.expm1(around)
        share = torch.maximum(torch.maximum(half, grown - around), (around + half).square() / 2)
        change = torch.minimum(box.change, nan_to_inf(weights * torch.maximum(grown, around + half)))
        beyond = torch.minimum(nan_to_inf(weights * share), nan_to_inf(change + weights * around))
        return cls(least, most, change, beyond)

    def mean(self, rates: Tensor) -> Tensor:
        """The largest sum_y alpha_y rates_y over the box, for rates >= 0 `(radii, heads, N, channel)`.

        The maximum of a linear function: weights start at `low`, and what is left to one goes to the largest rates.
        """
        order = rates.argsort(dim=2, descending=True)
        room = (self.high - self.low)[..., None].expand_as(rates).gather(2, order)
        before = room.cumsum(2) - room
        left = (1 - self.low.sum(-1))[..., None, None]
        extra = torch.minimum((left - before).clamp_min(0.0), room)
        most: Tensor = (self.low[..., None] * rates).sum(2) + (extra * rates.gather(2, order)).sum(2)
        return nan_to_inf(most)


def _one_against_others(one: Tensor, others: Tensor) -> Tensor:
    """exp(one_y) / (exp(one_y) + sum_{z != y} exp(others_z)) for every y along the last axis."""
    ends = [F.pad(row.logcumsumexp(-1)[..., :-1], (1, 0), value=-torch.inf) for row in (others, others.flip(-1))]
    return (one - torch.logaddexp(ends[0], ends[1].flip(-1))).sigmoid()


def rest_of(rule: Rule, motions: Sequence[Motion]) -> Rest:
    """The rule's rest, infinite where it is undefined."""
    rest = rule.rest(*motions)
    return Rest(nan_to_inf(rest.width), nan_to_inf(rest.rate), rest.factors)
