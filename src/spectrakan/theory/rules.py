"""What each nonlinear operation brings to a certificate: a linear part, and an interval of the rest.

A node f has inputs h that stay in [a, b] while the network's input moves in its ball, h_0 at its centre, and that
move at most by L |u - u'| between two inputs of the ball. With l the linear part a rule bounds
    low, high    low <= f(h) - f(h_0) - l (h - h_0) <= high            from the centre to anywhere in the ball,
    rate         |f(h) - f(h') - l (h - h')| <= rate |u - u'|          between any two inputs of it.
Any l is right. `relax` chooses one once the intervals of the inputs are known; until then it is the derivative at the
centre. Proofs are in docs/theory.md. Shapes: as in the model, with a batch of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from spectrakan.nn.kan import KANLayer
from spectrakan.theory.norms import ROUNDING, nan_to_inf, sup_to_two
from spectrakan.theory.slopes import (
    BOUNDED,
    CURVATURES,
    FUNCTIONS,
    EdgePieces,
    chord,
    enclose,
    farthest,
    rest_range,
    slope_at,
    slope_range,
)

SMALL = 0.3
"""Motion up to which a function's linear part is its derivative, which leaves a rest of second order."""
FLATTER = 0.6
"""Share of what a chord and its rest span below which a bounded function's values are taken by themselves."""
MILD = 0.5
"""Motion of scores up to which the linear part of attention includes the weights' change."""


@dataclass(frozen=True)
class JointMotion:
    """Numbers of a given shape that move by J d, |d| <= radius, and beyond it.

    `jacobian` `(*shape, inputs)`; `beyond` `(*shape, 2)`, for changes and for rates.
    """

    jacobian: Tensor
    beyond: Tensor
    radius: float

    def sizes(self, places: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Euclidean norms of change and rate along some places of the shape."""
        last = range(-1 - len(places), -1)
        grouped = [each.movedim([*places], [*last]).flatten(last[0], -2) for each in (self.jacobian, self.beyond)]
        return joint_sizes(self.radius, sup_to_two(grouped[0]), grouped[1].norm(dim=-2))


def joint_sizes(radius: float, steepest: Tensor, beyond: Tensor) -> tuple[Tensor, Tensor]:
    """Euclidean norms of change and rate, from the norm of the linear part and those of the rests, `(.., 2)`."""
    change, rate = radius * steepest + beyond[..., 0], steepest + beyond[..., 1]
    return nan_to_inf(change * (1 + ROUNDING)), nan_to_inf(rate * (1 + ROUNDING))


@dataclass(frozen=True)
class Motion:
    """An input of a node in a ball: value at the centre, the interval of its values, rate L."""

    centre: Tensor
    low: Tensor
    high: Tensor
    rate: Tensor
    joint: JointMotion | None = None
    """How the numbers move together, where it is known."""

    @property
    def reach(self) -> Tensor:
        """The largest distance from the centre."""
        return nan_to_inf(torch.maximum(self.high - self.centre, self.centre - self.low))

    def sizes(self, *dims: int) -> tuple[Tensor, Tensor]:
        """Euclidean norms of change and rate along some places of the shape, or of all numbers."""
        dims = dims or tuple(range(self.centre.ndim))
        change, rate = (nan_to_inf(each.square().sum(dims).sqrt()) for each in (self.reach, self.rate))
        if self.joint is None:
            return change, rate
        joint = self.joint.sizes(dims)
        return torch.minimum(change, joint[0]), torch.minimum(rate, joint[1])


@dataclass(frozen=True)
class Factors:
    """Bounds of the rest e of a function of single numbers by the change x of its input, entry by entry.

    Upwards and downwards, e <= up |x|, -e <= down |x| and e <= bend_up x² / 2, -e <= bend_down x² / 2; between two
    inputs the rest changes by at most steep times their distance.
    """

    up: Tensor
    down: Tensor
    bend_up: Tensor
    bend_down: Tensor
    steep: Tensor


@dataclass(frozen=True)
class Rest:
    """What a node's linear part leaves, see the file's head."""

    low: Tensor
    high: Tensor
    rate: Tensor
    factors: Factors | None = None
    along: Callable[[Tensor], Tensor] | None = None
    """Of rows `(rows, entries)`: how far the rest can move them up and down, `(rows, 2)`, entries taken together."""

    @classmethod
    def within(cls, width: Tensor, rate: Tensor) -> Rest:
        """At most `width`; infinite where undefined."""
        width = nan_to_inf(width)
        return cls(-width, width, nan_to_inf(rate))


class Rule:
    """An operation with inputs that vary, given at the centre."""

    joined = False
    """Whether its bounds use `Motion.sizes`."""

    def __init__(self, out: Tensor, *centres: Tensor) -> None:
        self.out, self.centres = out, centres

    def relax(self, *motions: Motion) -> None:
        """Choose the linear part for inputs that move so; by default it stays."""

    def linear(self, *changes: Tensor) -> Tensor:
        """The linear part, of changes of the inputs."""
        raise NotImplementedError

    def rest(self, *motions: Motion) -> Rest:
        """Bounds of what the linear part leaves."""
        raise NotImplementedError


class Curve(Rule):
    """A function of every number by itself, whose slope and second derivative have known ranges."""

    def __init__(self, name: str, centre: Tensor) -> None:
        super().__init__(FUNCTIONS[name](centre), centre)
        self.name, self.slope = name, slope_at(name, centre)

    def relax(self, *motions: Motion) -> None:
        """The chord over the interval, or slope zero where the values of a bounded function leave much less."""
        (centre,), reach = self.centres, motions[0].reach
        slope = torch.where(reach > SMALL, chord(self.name, centre, reach), self.slope)
        self.slope = torch.where(reach.isfinite(), slope, 0.0 if self.name in BOUNDED else self.slope)
        if self.name in BOUNDED:
            low, high = motions[0].low, motions[0].high
            line, flat = (
                rest_range(self.name, low, high, centre, each) for each in (self.slope, torch.zeros_like(slope))
            )
            tilted = 2 * self.slope.abs() * reach + line[1] - line[0]
            self.slope = torch.where(flat[1] - flat[0] < FLATTER * tilted, 0.0, self.slope)

    def linear(self, *changes: Tensor) -> Tensor:
        """Slope times change."""
        return self.slope * changes[0]

    def rest(self, *motions: Motion) -> Rest:
        """By values on cells of the interval; the rate by the range of slopes."""
        (motion,) = motions
        reach = motion.reach
        steep = farthest(slope_range(self.name, motion.low, motion.high), self.slope)
        low, high = rest_range(self.name, motion.low, motion.high, motion.centre, self.slope)
        least, most = slope_range(self.name, motion.low, motion.high, table=CURVATURES)
        convex, concave = (nan_to_inf(each.clamp_min(0.0)) for each in (most, -least))
        turned = (slope_at(self.name, motion.centre) - self.slope).abs()
        up, down = (torch.minimum(steep, nan_to_inf(turned + bend * reach / 2)) for bend in (convex, concave))
        convex, concave = (torch.where(turned == 0, bend, torch.inf) for bend in (convex, concave))
        return Rest(low, high, nan_to_inf(steep * motion.rate), Factors(up, down, convex, concave, steep))


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
        return Rest.within(self.operation(one.reach, two.reach), rate)


class Edges(Rule):
    """A KAN layer `(in, batch)` -> `(out, batch)`: slopes of its edges are enclosed on intervals."""

    def __init__(self, layer: KANLayer, pieces: EdgePieces, centre: Tensor) -> None:
        inner = centre.clone().requires_grad_()
        with torch.enable_grad():
            out = type(layer).feature_major(layer, inner)
            rows = [torch.autograd.grad(row.sum(), inner, retain_graph=True)[0][:, 0] for row in out]
        super().__init__(out.detach(), centre)
        self.slopes, self.pieces = torch.stack(rows), pieces

    def relax(self, *motions: Motion) -> None:
        """The middle of each edge's slopes."""
        middle = torch.stack(enclose(self.pieces, motions[0].low, motions[0].high, 1)).mean(0)[..., 0]
        self.slopes = torch.where(middle.isfinite(), middle, self.slopes)

    def linear(self, *changes: Tensor) -> Tensor:
        """Slopes times changes."""
        return self.slopes @ changes[0]

    def rest(self, *motions: Motion) -> Rest:
        """By the slopes of every edge over its interval."""
        (motion,) = motions
        least, most = enclose(self.pieces, motion.low, motion.high, 1)
        own = self.slopes[..., None]
        steep = torch.maximum((least - own).abs(), (most - own).abs())
        return Rest.within((steep * motion.reach).sum(1), (steep * motion.rate).sum(1))


class Pool(Rule):
    """Attention: sum_y alpha_y v_y with alpha the softmax of scores `(batch, 1, N)`, v `(batch, N, channel)`.

    Scores have mean zero under the centre's weights in the whole ball (`centred_scores`), which changes no alpha.
    """

    def __init__(self, scores: Tensor, values: Tensor) -> None:
        self.weights = scores.softmax(-1)
        super().__init__(self.weights @ values, scores, values)
        self.centred = values[:, None] - self.out[:, :, None]
        """v - mean, `(batch, 1, N, channel)`."""
        self.turning = True
        """Whether the linear part includes the change of the weights."""

    def relax(self, *motions: Motion) -> None:
        """Weights whose scores move far do not change by their derivative."""
        self.turning = bool((motions[0].reach <= MILD).all())

    def linear(self, *changes: Tensor) -> Tensor:
        """E[dv], and Cov(ds, v) if weights turn."""
        scores, values = changes
        moved = self.weights @ values
        if not self.turning:
            return moved
        return moved + torch.einsum("bhn,hnc->bhc", self.weights * scores, self.centred[0])

    def rest(self, *motions: Motion) -> Rest:
        """By boxes of the weights."""
        scores, values = motions
        weights, away = self.weights, self.centred.abs()
        box = WeightBox.of(scores)
        moved = values.reach[:, None].expand(-1, weights.shape[1], -1, -1)
        change, beyond = box.change[..., None], (box.beyond if self.turning else box.change)[..., None]
        line = (weights[..., None] * moved).sum(2)
        turned = ((weights * scores.reach)[..., None] * away).sum(2) if self.turning else torch.zeros_like(line)
        by_values = torch.minimum(nan_to_inf((change * moved).sum(2)), nan_to_inf(box.mean(moved) + line))
        first = nan_to_inf((beyond * away).sum(2))
        # For large balls the whole change, plus the linear part's, is the better bound.
        high, low = (
            torch.minimum(
                torch.minimum(first, nan_to_inf(box.mean(side) + turned)) + by_values,
                nan_to_inf(box.mean(side + moved) + line + turned),
            )
            for side in (self.centred, -self.centred)
        )
        # Derivatives: E'[Dv] - E[Dv], then Cov'(Ds, v) - Cov(Ds, v) or Cov'(Ds, v), then Cov'(Ds, v' - v), which
        # vanishes with all weights but one: counted from the heaviest cell or from zero.
        pace, speed = values.rate[:, None].expand_as(moved), scores.rate[..., None]
        rate = (change * pace).sum(2)
        if self.turning:
            rate = rate + (change * (speed + box.mean(speed)[:, :, None]) * away).sum(2)
        else:
            moved = moved + away
        heaviest = weights.argmax(-1, keepdim=True)[..., None]
        others = (speed + speed.gather(2, heaviest)).scatter(2, heaviest, 0.0)
        by_others = box.mean(others * (moved + box.mean(moved)[:, :, None]))
        by_zero = box.mean(speed * moved) + box.mean(speed) * box.mean(moved)

        def along(rows: Tensor) -> Tensor:
            given = rows.unflatten(1, away.shape[1::2])
            sides = torch.einsum("rhc,bhnc->bhnr", given, self.centred)
            still = torch.einsum("rhc,bhc->bhr", given.abs(), by_values)
            turn = ((weights * scores.reach)[..., None] * sides.abs()).sum(2) if self.turning else 0.0
            straight = nan_to_inf((beyond * sides.abs()).sum(2))
            ends = [torch.minimum(straight, nan_to_inf(box.mean(side) + turn)) + still for side in (sides, -sides)]
            return nan_to_inf(torch.stack([end[0].sum(0) for end in ends], dim=1) * (1 + ROUNDING))

        return Rest(
            -nan_to_inf(low), nan_to_inf(high), nan_to_inf(rate + torch.minimum(by_others, by_zero)), along=along
        )


@dataclass(frozen=True)
class WeightBox:
    """Softmax weights over the ball, `(batch, 1, N)` each: bounds, their change, and what is not linear in it."""

    low: Tensor
    high: Tensor
    change: Tensor
    beyond: Tensor

    @classmethod
    def of(cls, scores: Motion) -> WeightBox:
        """Weights whose scores, with mean zero under the centre's, move as given: most where only s_y is high.

        >>> still = torch.zeros(1, 1, 2).double()
        >>> box = WeightBox.of(Motion(still, still - 1, still + 1, still))
        >>> torch.allclose(box.high, torch.tensor([2.0, 2.0]).double().sigmoid())
        True
        """
        low, high = scores.low, scores.high
        weights = scores.centre.softmax(-1)
        least, most = (_one_against_others(*ends) for ends in ((low, high), (high, low)))
        # Undefined where scores have no finite interval: a weight is then any number of [0, 1].
        least = torch.minimum(least.nan_to_num(0.0), weights) * (1 - 1e-12)
        most = torch.maximum(most.nan_to_num(1.0), weights) * (1 + 1e-12)
        box = cls(least, most, torch.maximum(most - weights, weights - least), most)
        sizes = scores.reach
        # log(alpha' / alpha) = ds - nu, since E[ds] = 0, and 0 <= nu <= Var / 2 under some weights of the box.
        half = box.mean(sizes.square()[..., None])[..., 0, None] / 2
        grown = torch.expm1(sizes)
        share = torch.maximum(torch.maximum(half, grown - sizes), (sizes + half).square() / 2)
        change = torch.minimum(box.change, nan_to_inf(weights * torch.maximum(grown, sizes + half)))
        beyond = torch.minimum(nan_to_inf(weights * share), nan_to_inf(change + weights * sizes))
        return cls(least, most, change, beyond)

    def mean(self, rates: Tensor) -> Tensor:
        """The largest sum_y alpha_y rates_y over the box, for rates `(batch, 1, N, channel)`.

        The maximum of a linear function: weights start at `low`, and what is left to one goes to the largest rates.
        """
        order = rates.argsort(dim=2, descending=True)
        room = (self.high - self.low)[..., None].expand_as(rates).gather(2, order)
        before = room.cumsum(2) - room
        left = (1 - self.low.sum(-1))[..., None, None]
        extra = torch.minimum((left - before).clamp_min(0.0), room)
        most: Tensor = (self.low[..., None] * rates).sum(2) + (extra * rates.gather(2, order)).sum(2)
        return nan_to_inf(most)


def centred_scores(scores: Tensor, weights: Tensor) -> Tensor:
    """Scores minus their mean under fixed weights: what all cells have in common does not matter to softmax."""
    return scores - (scores * weights).sum(-1, keepdim=True)


def _one_against_others(one: Tensor, others: Tensor) -> Tensor:
    """exp(one_y) / (exp(one_y) + sum_{z != y} exp(others_z)) for every y along the last axis."""
    ends = [F.pad(row.logcumsumexp(-1)[..., :-1], (1, 0), value=-torch.inf) for row in (others, others.flip(-1))]
    return (one - torch.logaddexp(ends[0], ends[1].flip(-1))).sigmoid()
