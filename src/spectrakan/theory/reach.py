"""How far every quantity of a model can move while the input moves in sup-norm balls: rows of Jacobians, no matrices.

In the affine program (`program`) every quantity x is x_0 + J d + sum_k G_k e_k, with d the input's change, |d| <= r,
and e_k in [low_k, high_k] what the linear part of node k leaves (`rules`). A row of x rises at most by
    r sum_i |J_i| + sum_k min( sum_c L_c,  ||(g+ u + g- v) / b||_2 s,  t s² + sum_c min(L_c, sum_j w_j(t)) ),
    L_c = min( sum_j g+ high + g- |low|,  ||(g+ u + g- v) / b||_2 s_c )        over the channels j of cell c,
g+ and g- the positive and negative parts of the row of G_k. The first in L_c bounds the entries of e_k one by one;
the others use that all of them do not move as far at once: s_c and s bound the Euclidean norm of b (h - h_0) in a
cell and over all, where e <= u |h - h_0| and -e <= v |h - h_0|, and w_j(t) is what entry j is worth at a price t for
its share of s². Sizes s come from norms of b J_h and of b G_k, not from rows. A row falls at most by the same with e
turned round, and between two inputs the same holds with rates. Nodes are bounded one after another. Rows of J and of
all G_k come from one backward pass, because samples of a batch do not depend on each other: a batch of rows at once,
summed up and dropped. Sums are widened by `ROUNDING`, far above the rounding errors of float64. Proofs are in
docs/theory.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spectrakan.theory.norms import ROUNDING, nan_to_inf, norm_of_gram, sup_to_two
from spectrakan.theory.program import Program
from spectrakan.theory.rules import JointMotion, Motion, Rest, joint_sizes

BATCH_NUMBERS = 1 << 21
"""Numbers of the largest node in one batch of rows."""
CACHED_NUMBERS = 1 << 16
"""Numbers of rows that are bounded at once."""
LEAST_BALL = 1024
"""Least numbers of a node for which Euclidean bounds are tried."""
LEAST_SHARE = 0.05
"""Least factor of changes over that of rates that entries are weighed by."""
SHARES = (0.5, 0.2, 0.08, 0.03)
"""Shares of the bound entry by entry that the budget is tried at."""
JACOBIAN_NUMBERS = 1 << 27
"""Most numbers of a Jacobian that is kept for Euclidean bounds; larger nodes have bounds entry by entry alone."""


@dataclass(frozen=True)
class JointRows:
    """What is kept of a quantity's changes to bound its entries together.

    `parts` `(units,)`: how far each node with joint sizes moves rows; `alone` `(units,)`: all other nodes.
    `grams` `(cells, channels, channels)`: products of a cell's rows of G_k c_k with each other.
    """

    alone: Tensor
    parts: dict[int, Tensor]
    grams: dict[int, Tensor]


@dataclass(frozen=True)
class _Joint:
    """How far the entries of a node move together, and what their rests e are at most for it.

    Sizes s bound ||b x||_2 of the changes x of the inputs: `cells` `(2, cells)` and `whole` `(2,)`, of changes and of
    rates. By b x of unit size the rests are at most `factor` `(3, units)`, for rises, falls and rates. A rise or fall
    by a share y of its interval takes a square (b x)² of at least y `price` and y² `squared_price`, `(2, units)`.
    """

    cells: Tensor
    whole: Tensor
    factor: Tensor
    price: Tensor
    squared_price: Tensor

    @property
    def share(self) -> Tensor:
        """C with ||e / c||_2 at most the whole size of changes."""
        return self.factor[:2].amax(0)


@dataclass(frozen=True)
class _Weights:
    """Of a node's rest: `box` `(3, units)` for rises, falls and rates, and joint bounds where they are known."""

    box: Tensor
    joint: _Joint | None = None
    along: Callable[[Tensor], Tensor] | None = None

    def bounds(self, rows: Tensor) -> Tensor:
        """What the rest moves rows `(rows, units)` by: up, down and in rate, `(rows, 3)`."""
        at_once = max(1, CACHED_NUMBERS // rows.shape[1])
        return torch.cat([self._bounds(part) for part in rows.split(at_once)])

    def _bounds(self, rows: Tensor) -> Tensor:
        up, sizes, sides = rows > 0, rows.abs(), []
        for kind, (first, second) in enumerate(((0, 1), (1, 0), (2, 2))):
            box = _picked(up, self.box, first, second, sizes)
            if self.joint is None:
                sides.append(nan_to_inf(box.sum(1)))
                continue
            joint, cells = self.joint, self.joint.cells.shape[-1]
            squares = _picked(up, joint.factor, first, second, sizes).square().unflatten(1, (-1, cells)).sum(1)
            norms = squares.sqrt()
            by_cells = torch.minimum(box.unflatten(1, (-1, cells)).sum(1), nan_to_inf(norms * joint.cells[kind // 2]))
            found = torch.minimum(by_cells.sum(1), nan_to_inf(squares.sum(1).sqrt() * joint.whole[kind // 2]))
            if kind < 2 and bool(box.isfinite().all()) and bool(joint.whole[0].isfinite()):
                linear = _picked(up, joint.price, first, second)
                curved = _picked(up, joint.squared_price, first, second)
                found = torch.minimum(found, auctioned(box, linear, curved, by_cells, joint.whole[0].square()))
            sides.append(nan_to_inf(found))
        found = torch.stack(sides, dim=1)
        if self.along is not None:
            found[:, :2] = torch.minimum(found[:, :2], self.along(rows))
        return found


def _picked(up: Tensor, weights: Tensor, first: int, second: int, sizes: Tensor | None = None) -> Tensor:
    """Weights of rises where rows are positive and of falls elsewhere, times the rows' sizes."""
    chosen = weights[first] if first == second else torch.where(up, weights[first], weights[second])
    return chosen if sizes is None else nan_to_inf(sizes * chosen)


def auctioned(values: Tensor, price: Tensor, curved_price: Tensor, limits: Tensor, budget: Tensor) -> Tensor:
    """A bound of sum_j y_j v_j over shares y of [0, 1] whose costs sum to at most the budget, row by row.

    A share y_j costs y_j p_j, or y_j² q_j where p_j is zero; in every cell the sum is at most its limit
    `(rows, cells)`. For every t > 0 the whole is at most t budget + sum_j max_y (y v_j - t cost_j(y)), taken cell by
    cell; the smallest over a few t is taken.

    >>> one = torch.ones(1, 2).double()
    >>> float(auctioned(one, one, one, one, torch.tensor(1.0).double()))  # a budget for one of two
    1.0
    """
    total = limits.sum(1)
    best, flat = total, price == 0
    bends = bool(flat.any())
    for share in SHARES:
        rate = (share * total / budget)[:, None]
        left = torch.addcmul(values, rate, price, value=-1.0).clamp_min_(0.0)
        if bends:
            half = 2 * rate * curved_price
            left = torch.where(
                flat, torch.where(values < half, values.square() / (2 * half), values - half / 2), left
            )
        by_cells = torch.minimum(left.unflatten(1, (-1, limits.shape[1])).sum(1), limits)
        best = torch.minimum(best, nan_to_inf(share * total + by_cells.sum(1)))
    return best


class Reach:
    """All motions of a program in one ball; each linear part is chosen once its inputs are bounded.

    `tell` is called with the number of rows that have been bounded since its last call.
    """

    def __init__(self, program: Program, radius: float, tell: Callable[[int], None] = lambda rows: None) -> None:
        self.program, self.radius, self._tell = program, radius, tell
        self.motions: list[list[Motion]] = []
        self.rests: list[Rest] = []
        self._weights: list[_Weights] = []
        self._kept: dict[tuple[int, int], tuple[Motion, JointRows]] = {}
        largest = max([rule.out.numel() for rule in program.rules], default=1)
        self._batch = max(2, min(256, BATCH_NUMBERS // largest))
        for number, rule in enumerate(program.rules):
            keep = (
                len(rule.centres) == 1
                and LEAST_BALL <= rule.out.numel() <= JACOBIAN_NUMBERS // program.centre.numel()
            )
            found = [self._found(number, place, keep=keep or rule.joined) for place in range(len(rule.centres))]
            motions = [motion for motion, _ in found]
            rule.relax(*motions)
            self.rests.append(rule.rest(*motions))
            self.motions.append([replace(motion, joint=None) for motion in motions])
            self._weights.append(self._weighed(number, self.rests[-1], *found[0]))

    def _found(self, number: int, place: int, *, keep: bool) -> tuple[Motion, JointRows]:
        """A node's input, bounded once where several nodes have it."""
        first = self.program.first_use[number][place]
        if first != (number, place) and not keep:
            return self._kept[first]
        centre, dim = self.program.rules[number].centres[place], self.program.node_dims[number][place]
        leaves = self._leaves(number, centre.numel())
        self.program.run_until(number, leaves[0], dict(enumerate(leaves[1:])))
        motion, rows = self._bounded(centre, self.program.calls[number][place], dim, leaves, keep=keep)
        self._kept[first] = replace(motion, joint=None), rows
        return motion, rows

    def target(self, name: str, *, keep: bool = False) -> Motion:
        """The motion of a quantity of the run; `keep` keeps its Jacobian."""
        leaves = self._leaves(len(self.program.rules), self.program.targets[name].numel())
        value = self.program.values(leaves[0], dict(enumerate(leaves[1:])))[name]
        return self._bounded(self.program.targets[name], value, self.program.target_dims[name], leaves, keep=keep)[0]

    def _leaves(self, nodes: int, units: int) -> list[Tensor]:
        """Inputs, and errors of the first nodes, for a batch of so many rows at most, that gradients are taken of."""
        centre, batch = self.program.centre.detach(), max(2, min(self._batch, units))
        leaves = [centre.expand(batch, *centre.shape[1:]).clone()]
        for rule, dims in zip(self.program.rules[:nodes], self.program.node_dims, strict=False):
            shape = list(rule.out.shape)
            shape[dims[-1]] = batch
            leaves.append(torch.zeros(shape, dtype=torch.float64))
        return [leaf.requires_grad_() for leaf in leaves]

    def _bounded(
        self, centre: Tensor, value: Tensor, dim: int, leaves: list[Tensor], *, keep: bool
    ) -> tuple[Motion, JointRows]:
        units, shape = centre.numel(), [size for place, size in enumerate(value.shape) if place != dim]
        linear = torch.zeros(units, dtype=torch.float64)
        alone = torch.zeros(units, 3, dtype=torch.float64)
        parts: dict[int, Tensor] = {}
        grams: dict[int, Tensor] = {}
        jacobian = torch.zeros(units, self.program.centre.numel(), dtype=torch.float64) if keep else None
        # Rows of one cell after another, so that their products are known before they are dropped.
        channels, order, step = shape[0], torch.arange(units), leaves[0].shape[0]
        by_cell = keep and channels <= step
        if by_cell:
            order, step = order.view(channels, -1).T.flatten(), step // channels * channels
        for rows in order.split(step):
            self._tell(len(rows))
            gradients = self._rows(value, dim, rows, leaves)
            if gradients[0] is not None:
                linear[rows] = gradients[0].abs().sum(1)
                if jacobian is not None:
                    jacobian[rows] = gradients[0]
            for number, (gradient, weights) in enumerate(zip(gradients[1:], self._weights, strict=False)):
                if gradient is None:
                    continue
                if weights.joint is None:
                    alone[rows] += weights.bounds(gradient)
                    continue
                parts.setdefault(number, torch.zeros_like(alone))[rows] = weights.bounds(gradient)
                if by_cell:
                    scaled = (gradient * weights.joint.share).view(-1, channels, gradient.shape[1])
                    products = torch.zeros(units // channels, channels, channels, dtype=torch.float64)
                    grams.setdefault(number, products)[rows[::channels]] = scaled @ scaled.mT
        linear, alone, *sums = (nan_to_inf(part * (1 + ROUNDING)) for part in (linear, alone, *parts.values()))
        beyond = torch.stack([alone, *sums]).sum(0)
        ends = torch.stack([self.radius * linear, self.radius * linear, linear], dim=1) + beyond
        up, down, rate = (part.view(1, *shape).movedim(0, dim) for part in ends.unbind(1))
        changes = [each[:, :2].amax(1) for each in (beyond, alone, *sums)]
        joint = None
        if jacobian is not None:
            rest = torch.stack([changes[0], beyond[:, 2]], dim=1)
            first, second = (each.view(*shape, -1).unsqueeze(dim) for each in (jacobian, rest))
            joint = JointMotion(first, second, self.radius)
        together = JointRows(changes[1], dict(zip(parts, changes[2:], strict=True)), grams)
        return Motion(centre, centre - down, centre + up, rate, joint), together

    def _rows(
        self,
        value: Tensor,
        dim: int,
        rows: Tensor,
        leaves: Sequence[Tensor],
        places: Sequence[int] | None = None,
    ) -> list[Tensor | None]:
        """Rows of a value's Jacobians by leaves, `(rows, entries)` each; None for leaves that it does not use."""
        shape = [size for place, size in enumerate(value.shape) if place != dim]
        cotangent = torch.zeros(value.shape[dim], math.prod(shape), dtype=torch.float64)
        cotangent[torch.arange(len(rows)), rows] = 1.0
        cotangent = cotangent.view(-1, *shape).movedim(0, dim)
        found = torch.autograd.grad(value, leaves, cotangent, retain_graph=True, allow_unused=True)
        places = places or [0, *(dims[-1] for dims in self.program.node_dims)]
        return [
            None if each is None else each.movedim(place, 0).flatten(1)[: len(rows)]
            for each, place in zip(found, places, strict=False)
        ]

    def _weighed(self, number: int, rest: Rest, motion: Motion, rows: JointRows) -> _Weights:
        """A node's rest over its entries, in all forms where the Jacobian of its input is known."""
        dim = self.program.node_dims[number][-1]

        def flat(*parts: Tensor) -> Tensor:
            return torch.stack([part.movedim(dim, 0).flatten() for part in parts])

        box, factors = flat(rest.high, -rest.low, rest.rate), rest.factors
        if factors is None or motion.joint is None:
            return _Weights(box, along=rest.along)
        linear = flat(factors.up, factors.down, factors.steep)
        # All kinds of rest share b, a root of their factors; entries without a rest need none.
        root = torch.maximum(linear[:2].amax(0), LEAST_SHARE * linear[2]).sqrt().clamp_min(1e-150)
        channels = rest.high.movedim(dim, 0).shape[1]
        scaled, beyond = (
            root[:, None] * part.flatten(0, -2) for part in (motion.joint.jacobian, motion.joint.beyond)
        )
        steepest = sup_to_two(scaled.view(channels, -1, scaled.shape[1]).transpose(0, 1))
        cells = torch.stack(joint_sizes(self.radius, steepest, beyond.view(channels, -1, 2).norm(dim=0)))
        cells[0] = torch.minimum(cells[0], self._cells_together(rows, root.view(channels, -1), steepest))
        narrow = self._whole_together(number, root, rows)
        steepest = sup_to_two(scaled) if narrow is None else narrow[0]
        whole = torch.stack(joint_sizes(self.radius, steepest, beyond.norm(dim=0)))
        if narrow is not None:
            whole[0] = torch.minimum(whole[0], narrow[1])
        # Squares of b x that it takes to reach an end: e <= bend x² / 2 and e <= factor |x|.
        ends, bends = box[:2], flat(factors.bend_up, factors.bend_down) / 2
        price = (root.square() * ends / bends).nan_to_num(0.0, posinf=0.0)
        squared = (root * ends / linear[:2]).square().nan_to_num(0.0, posinf=0.0)
        return _Weights(box, _Joint(cells, whole, linear / root, price, squared), rest.along)

    def _cells_together(self, rows: JointRows, root: Tensor, steepest: Tensor) -> Tensor:
        """Sizes of changes by cell, with the rests of each node taken together; `root` `(channels, cells)`."""
        total = self.radius * steepest + (root * rows.alone.view_as(root)).norm(dim=0)
        for number, part in rows.parts.items():
            size = (root * part.view_as(root)).norm(dim=0)
            joint = self._weights[number].joint
            if number in rows.grams and joint is not None:
                gram = root.T[:, :, None] * rows.grams[number] * root.T[:, None]
                size = torch.minimum(size, nan_to_inf(norm_of_gram(gram) * joint.whole[0]))
            total = total + size
        return nan_to_inf(total * (1 + ROUNDING))

    def _whole_together(self, number: int, root: Tensor, rows: JointRows) -> tuple[Tensor, Tensor] | None:
        """The same over all entries, if they depend on the input through few numbers: steepest, and the change.

        With q these numbers, x = S q and S^T b² S <= L L^T, ||b x||_2 <= ||L^T q||_2.
        """
        leaves = self._leaves(number, self._batch)
        self.program.run_until(number, leaves[0], dict(enumerate(leaves[1:])))
        value, dim = self.program.calls[number][0], self.program.node_dims[number][0]
        found = self.program.narrowest(value, leaves)
        if found is None or 2 * found[0].numel() > value.numel():
            return None
        narrow, place = found
        count = narrow.numel() // self._batch
        by_rows = [self._rows(narrow, place, each, leaves) for each in torch.arange(count).split(self._batch)]
        columns = [_stacked(each) for each in zip(*by_rows, strict=True)]
        order = torch.arange(len(root)).split(self._batch)
        spread = _stacked([self._rows(value, dim, each, [narrow], [place])[0] for each in order])
        if columns[0] is None or spread is None:
            return None
        scaled = root[:, None] * spread
        middle = scaled.T @ scaled
        shift = torch.eye(count, dtype=torch.float64) * (ROUNDING * middle.trace())
        factor, failed = torch.linalg.cholesky_ex(middle + shift)
        if bool(failed) or not bool(factor.isfinite().all()):
            return None
        steepest = sup_to_two(factor.T @ columns[0])
        total = self.radius * steepest + (root * rows.alone).norm()
        for source, part in rows.parts.items():
            size, column = (root * part).norm(), columns[source + 1]
            joint = self._weights[source].joint
            if column is not None and joint is not None:
                pulled = factor.T @ (column * joint.share)
                size = torch.minimum(size, nan_to_inf(norm_of_gram(pulled @ pulled.T) * joint.whole[0]))
            total = total + size
        return steepest, nan_to_inf(total * (1 + ROUNDING))


def _stacked(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Rows of several batches in one matrix; None where there are none."""
    known = [part for part in parts if part is not None]
    return torch.cat(known) if known else None
