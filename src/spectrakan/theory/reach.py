"""How far every quantity of a model can move while the input moves in sup-norm balls: rows of Jacobians, no matrices.

In the affine program (`program`) every quantity x is x_0 + J d + sum_k G_k e_k, with d the input's change, |d| <= r,
and e_k what the linear part of node k leaves (`rules`). A row of x moves at most by
    r sum_i |J_i| + sum_k min( |G_k| w_k,  ||G_k a_k||_2 g_k,  max |G_k m_k| g_k² ):
w_k bounds the entries of e_k one by one; where |e_k| <= a b |h - h_0| and |e_k| <= m b² (h - h_0)² entry by entry,
g_k bounds the Euclidean norm of b (h - h_0) over the ball, which is far less than that of its entries' bounds,
    g_k <= r ||b J_h||_{sup -> 2} + ||b rho||_2,     rho what the rows of h move by beyond J_h d.
Between two inputs the same holds with rates. Nodes are bounded one after another. Rows of J and of all G_k come from
one backward pass, because samples of a batch do not depend on each other: a batch of rows at once, summed up and
dropped. Sums are widened by `ROUNDING`, far above the rounding errors of float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.theory.norms import ROUNDING, nan_to_inf, sup_to_two
from spectrakan.theory.program import Program
from spectrakan.theory.rules import Motion, Rest, rest_of

BATCH_NUMBERS = 1 << 21
"""Numbers of the largest node in one batch of rows."""
LEAST_BALL = 1024
"""Least numbers of a node for which Euclidean bounds are tried."""
JACOBIAN_NUMBERS = 1 << 27
"""Most numbers of a Jacobian that is kept for Euclidean bounds; larger nodes have bounds entry by entry alone."""


@dataclass(frozen=True)
class Reached:
    """A quantity's motion, what its rows move by beyond J d, `(units, 2 radii)`, and its Jacobian where kept."""

    motion: Motion
    beyond: Tensor
    jacobian: Tensor | None


@dataclass(frozen=True)
class _Weights:
    """Of a node's rest, over its entries: `box` w, `ball` a² and `peak` m, `(units, 2 radii)` each.

    `sizes` `(2, 2 radii)` belong to ball and peak.
    """

    box: Tensor
    ball: Tensor | None = None
    peak: Tensor | None = None
    sizes: Tensor | None = None

    def bounds(self, rows: Tensor) -> Tensor:
        """What the rest moves rows by: absolute rows `(rows, units)` to `(rows, 2 radii)`."""
        by_box = nan_to_inf(rows @ self.box)
        if self.ball is None or self.peak is None or self.sizes is None:
            return by_box
        by_ball = (rows.square() @ self.ball).sqrt() * self.sizes[0]
        by_peak = torch.stack([(rows * column).amax(1) for column in self.peak.T], dim=1) * self.sizes[1]
        return torch.minimum(by_box, torch.minimum(nan_to_inf(by_ball), nan_to_inf(by_peak)))


class Reach:
    """All motions of a program in balls of several radii; rates follow after distances wherever both are counted."""

    def __init__(self, program: Program, radii: Sequence[float]) -> None:
        self.program, self.radii = program, torch.tensor(radii, dtype=torch.float64)
        self.motions: list[list[Motion]] = []
        self._weights: list[_Weights] = []
        largest = max([rule.out.numel() for rule in program.rules], default=1)
        self._batch = max(2, min(256, BATCH_NUMBERS // largest))
        for number, rule in enumerate(program.rules):
            dims, leaves = program.node_dims[number], self._leaves(number)
            inputs = program.node_inputs(number, leaves[0], leaves[1:])
            keep = len(inputs) == 1 and LEAST_BALL <= rule.out.numel() <= JACOBIAN_NUMBERS // program.centre.numel()
            found = [
                self._bounded(rule.centres[place], value, dims[place], leaves, keep=keep)
                for place, value in enumerate(inputs)
            ]
            self.motions.append([each.motion for each in found])
            self._weights.append(self._weighed(rest_of(rule, self.motions[-1]), dims, found[0]))

    def target(self, name: str, *, keep: bool = False) -> Reached:
        """The motion of a quantity of the run; `keep` keeps its Jacobian."""
        leaves = self._leaves(len(self.program.rules))
        value = self.program.values(leaves[0], leaves[1:])[name]
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
        units, count = centre.numel(), len(self.radii)
        shape = [size for place, size in enumerate(value.shape) if place != dim]
        linear = torch.zeros(units, 1, dtype=torch.float64)
        beyond = torch.zeros(units, 2 * count, dtype=torch.float64)
        jacobian = torch.zeros(units, self.program.centre.numel(), dtype=torch.float64) if keep else None
        for first in range(0, units, self._batch):
            rows = torch.arange(first, min(first + self._batch, units))
            cotangent = torch.zeros(self._batch, units, dtype=torch.float64)
            cotangent[torch.arange(len(rows)), rows] = 1.0
            cotangent = cotangent.view(self._batch, *shape).movedim(0, dim)
            gradients = torch.autograd.grad(value, leaves, cotangent, retain_graph=True, allow_unused=True)
            if gradients[0] is not None:
                own = gradients[0].flatten(1)[: len(rows)]
                linear[rows, 0] = own.abs().sum(1)
                if jacobian is not None:
                    jacobian[rows] = own
            for gradient, weights, dims in zip(gradients[1:], self._weights, self.program.node_dims, strict=False):
                if gradient is not None:
                    flat = gradient.movedim(dims[-1], 0).flatten(1)[: len(rows)].abs()
                    beyond[rows] += weights.bounds(flat)
        linear, beyond = (nan_to_inf(part * (1 + ROUNDING)) for part in (linear, beyond))
        whole = torch.cat([linear * self.radii, linear.expand(-1, count)], dim=1) + beyond
        reach, rate = (part.T.reshape(count, *shape).movedim(0, dim) for part in whole.split(count, dim=1))
        return Reached(Motion(centre, reach, rate), beyond, jacobian)

    def _weighed(self, rest: Rest, dims: list[int], found: Reached) -> _Weights:
        """A node's rest over its entries, in both forms where the Jacobian of its input is known."""

        def columns(*parts: Tensor) -> Tensor:
            return torch.cat([part.movedim(dims[-1], 0).flatten(1) for part in parts]).T.contiguous()

        box, count = columns(rest.width, rest.rate), len(self.radii)
        if rest.factors is None or found.jacobian is None:
            return _Weights(box)
        factors, bend = columns(*rest.factors[:2]), columns(rest.factors[2])
        # Both kinds of rest share b, the root of the larger factor; entries without a rest need none.
        roots = factors[:, count:].sqrt().clamp_min(1e-150)
        sizes = []
        for place, radius in enumerate(self.radii.tolist()):
            root = roots[:, place : place + 1]
            steepest = sup_to_two(root * found.jacobian)
            beyond = (root * found.beyond[:, [place, count + place]]).norm(dim=0)
            sizes.append(torch.stack([radius * steepest + beyond[0], steepest + beyond[1]]))
        change, rate = nan_to_inf(torch.stack(sizes, dim=1) * (1 + ROUNDING))
        ball, peak = (factors / roots.repeat(1, 2)).square(), bend / roots.square()
        both = torch.stack([torch.cat([change, rate]), torch.cat([change.square() / 2, change * rate])])
        return _Weights(box, ball, peak.repeat(1, 2), both)
