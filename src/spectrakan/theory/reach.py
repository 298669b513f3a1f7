"""How far every quantity of a model can move while the input moves in sup-norm balls: rows of Jacobians, no matrices.

In the affine program (`program`) every quantity x is x_0 + J d + sum_k G_k e_k, with d the input's change, |d| <= r,
and e_k in [low_k, high_k] what the linear part of node k leaves (`rules`). A row of x rises at most by
    r sum_i |J_i| + sum_k sum_c min( g+ high + g- |low|,  ||g+ u + g- v||_2 s_c,  max(g+ m + g- n) s_c² ),
g+ and g- the positive and negative parts of the row of G_k in cell c. The first bounds the entries of e_k one by one;
the others use that all channels of a cell do not move as far at once. Where e <= u b |h - h_0|, -e <= v b |h - h_0|,
e <= m b² (h - h_0)² and -e <= n b² (h - h_0)², s_c bounds the Euclidean norm of b (h - h_0) in the cell,
    s_c <= r ||b J_h||_{sup -> 2} + ||b rho||_2,     rho what the rows of h move by beyond J_h d;
the second is also taken over all cells at once. A row falls at most by the same with e turned round, and between two
inputs the same holds with rates. Nodes are bounded one after another. Rows of J and of all G_k come from one backward
pass, because samples of a batch do not depend on each other: a batch of rows at once, summed up and dropped. Sums are
widened by `ROUNDING`, far above the rounding errors of float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.theory.norms import ROUNDING, nan_to_inf, sup_to_two
from spectrakan.theory.program import Program
from spectrakan.theory.rules import Motion, Rest

BATCH_NUMBERS = 1 << 21
"""Numbers of the largest node in one batch of rows."""
LEAST_BALL = 1024
"""Least numbers of a node for which Euclidean bounds are tried."""
JACOBIAN_NUMBERS = 1 << 27
"""Most numbers of a Jacobian that is kept for Euclidean bounds; larger nodes have bounds entry by entry alone."""


@dataclass(frozen=True)
class Reached:
    """A quantity's motion, what its rows move by beyond J d, `(units, 2)` for changes and rates, and J where kept."""

    motion: Motion
    beyond: Tensor
    jacobian: Tensor | None


@dataclass(frozen=True)
class _Weights:
    """Of a node's rest, `(3, units)` each, for rises, falls and rates: `box`, `ball` and `peak`.

    `sizes` `(2, 2, cells)` and `whole` `(2,)` belong to ball and peak: of changes and of rates, by cells and overall.
    """

    box: Tensor
    ball: Tensor | None = None
    peak: Tensor | None = None
    sizes: Tensor | None = None
    whole: Tensor | None = None
    along: Callable[[Tensor], Tensor] | None = None

    def bounds(self, rows: Tensor) -> Tensor:
        """What the rest moves rows `(rows, units)` by: up, down and in rate, `(rows, 3)`."""
        plus, minus = rows.clamp_min(0.0), (-rows).clamp_min(0.0)
        pairs = (plus, minus, 0), (minus, plus, 0), (plus, minus, 2)
        found = torch.stack([self._side(*pair) for pair in pairs], dim=1)
        if self.along is not None:
            found[:, :2] = torch.minimum(found[:, :2], self.along(rows))
        return found

    def _side(self, plus: Tensor, minus: Tensor, kind: int) -> Tensor:
        def weighed(weights: Tensor) -> Tensor:
            other = weights[1] if kind == 0 else weights[2]
            if bool(weights.isfinite().all()):
                return plus * weights[kind] + minus * other
            return nan_to_inf(plus * weights[kind]) + nan_to_inf(minus * other)

        if self.ball is None or self.peak is None or self.sizes is None or self.whole is None:
            return nan_to_inf(weighed(self.box).sum(1))
        cells = self.sizes.shape[-1]
        box, ball, peak = (weighed(part).unflatten(1, (-1, cells)) for part in (self.box, self.ball, self.peak))
        norms, rates = ball.norm(dim=1), int(kind == 2)
        by_cells = torch.minimum(
            nan_to_inf(norms * self.sizes[0, rates]), nan_to_inf(peak.amax(1) * self.sizes[1, rates])
        )
        by_cells = torch.minimum(nan_to_inf(box.sum(1)), by_cells).sum(1)
        return torch.minimum(by_cells, nan_to_inf(norms.norm(dim=1) * self.whole[rates]))


class Reach:
    """All motions of a program in one ball; each linear part is chosen once its inputs are bounded."""

    def __init__(self, program: Program, radius: float) -> None:
        self.program, self.radius = program, radius
        self.motions: list[list[Motion]] = []
        self.rests: list[Rest] = []
        self._weights: list[_Weights] = []
        largest = max([rule.out.numel() for rule in program.rules], default=1)
        self._batch = max(2, min(256, BATCH_NUMBERS // largest))
        for number, rule in enumerate(program.rules):
            keep = (
                len(rule.centres) == 1
                and LEAST_BALL <= rule.out.numel() <= JACOBIAN_NUMBERS // program.centre.numel()
            )
            found = [self._node(number, place, keep=keep) for place in range(len(rule.centres))]
            rule.relax(*(each.motion.reach for each in found))
            self.motions.append([each.motion for each in found])
            self.rests.append(rule.rest(*self.motions[-1]))
            self._weights.append(self._weighed(self.rests[-1], program.node_dims[number][-1], found[0]))

    def _node(self, number: int, place: int, *, keep: bool) -> Reached:
        leaves = self._leaves(number)
        self.program.values(leaves[0], dict(enumerate(leaves[1:])))
        value, dim = self.program.calls[number][place], self.program.node_dims[number][place]
        return self._bounded(self.program.rules[number].centres[place], value, dim, leaves, keep=keep)

    def target(self, name: str, *, keep: bool = False) -> Reached:
        """The motion of a quantity of the run; `keep` keeps its Jacobian."""
        leaves = self._leaves(len(self.program.rules))
        value = self.program.values(leaves[0], dict(enumerate(leaves[1:])))[name]
        return self._bounded(self.program.targets[name], value, self.program.target_dims[name], leaves, keep=keep)

    def _leaves(self, nodes: int) -> list[Tensor]:
        """Inputs, and errors of the first nodes, for a batch of rows, that gradients are taken of."""
        centre = self.program.centre.detach()
        leaves = [centre.expand(self._batch, *centre.shape[1:]).clone()]
        for rule, dims in zip(self.program.rules[:nodes], self.program.node_dims, strict=False):
            shape = list(rule.out.shape)
            shape[dims[-1]] = self._batch
            leaves.append(torch.zeros(shape, dtype=torch.float64))
        return [leaf.requires_grad_() for leaf in leaves]

    def _bounded(self, centre: Tensor, value: Tensor, dim: int, leaves: list[Tensor], *, keep: bool) -> Reached:
        units, shape = centre.numel(), [size for place, size in enumerate(value.shape) if place != dim]
        linear = torch.zeros(units, dtype=torch.float64)
        beyond = torch.zeros(units, 3, dtype=torch.float64)
        jacobian = torch.zeros(units, self.program.centre.numel(), dtype=torch.float64) if keep else None
        for first in range(0, units, self._batch):
            rows = torch.arange(first, min(first + self._batch, units))
            cotangent = torch.zeros(self._batch, units, dtype=torch.float64)
            cotangent[torch.arange(len(rows)), rows] = 1.0
            cotangent = cotangent.view(self._batch, *shape).movedim(0, dim)
            gradients = torch.autograd.grad(value, leaves, cotangent, retain_graph=True, allow_unused=True)
            if gradients[0] is not None:
                own = gradients[0].flatten(1)[: len(rows)]
                linear[rows] = own.abs().sum(1)
                if jacobian is not None:
                    jacobian[rows] = own
            for gradient, weights, dims in zip(gradients[1:], self._weights, self.program.node_dims, strict=False):
                if gradient is not None:
                    beyond[rows] += weights.bounds(gradient.movedim(dims[-1], 0).flatten(1)[: len(rows)])
        linear, beyond = (nan_to_inf(part * (1 + ROUNDING)) for part in (linear, beyond))
        ends = torch.stack([self.radius * linear, self.radius * linear, linear], dim=1) + beyond
        up, down, rate = (part.view(1, *shape).movedim(0, dim) for part in ends.unbind(1))
        worst = torch.stack([beyond[:, :2].amax(1), beyond[:, 2]], dim=1)
        return Reached(Motion(centre, centre - down, centre + up, rate), worst, jacobian)

    def _weighed(self, rest: Rest, dim: int, found: Reached) -> _Weights:
        """A node's rest over its entries, in all forms where the Jacobian of its input is known."""

        def flat(*parts: Tensor) -> Tensor:
            return torch.stack([part.movedim(dim, 0).flatten() for part in parts])

        box, factors = flat(rest.high, -rest.low, rest.rate), rest.factors
        if factors is None or found.jacobian is None:
            return _Weights(box, along=rest.along)
        # All kinds of rest share b, the root of the largest factor; entries without a rest need none.
        root = flat(factors.steep)[0].sqrt().clamp_min(1e-150)
        channels = rest.high.movedim(dim, 0).shape[1]
        linear, beyond = root[:, None] * found.jacobian, root[:, None] * found.beyond
        by_cell = linear.view(channels, -1, linear.shape[1]).transpose(0, 1)
        sizes = torch.stack([*self._sizes(sup_to_two(by_cell), beyond.view(channels, -1, 2).norm(dim=0).T)])
        whole = torch.stack([*self._sizes(sup_to_two(linear), beyond.norm(dim=0))])
        change, rate = sizes
        both = torch.stack([sizes, torch.stack([change.square(), change * rate])])
        ball = flat(factors.up, factors.down, factors.steep) / root
        bends = flat(factors.bend_up / 2, factors.bend_down / 2, torch.maximum(factors.bend_up, factors.bend_down))
        return _Weights(box, ball, bends / root.square(), both, whole)

    def _sizes(self, steepest: Tensor, beyond: Tensor) -> tuple[Tensor, Tensor]:
        """Euclidean motions of changes and rates, from the norm of the linear part and the rests."""
        change, rate = self.radius * steepest + beyond[0], steepest + beyond[1]
        return nan_to_inf(change * (1 + ROUNDING)), nan_to_inf(rate * (1 + ROUNDING))
