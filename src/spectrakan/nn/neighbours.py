"""A local path: every channel looks to one neighbour, at a fixed share of the domain.

    (N v)_c(x) = w_c (v_c(x + d_c) - v_c(x)),     d_c = +d e_a or -d e_a, the channels shared out among the directions

A layer's other maps mix the channels, so all directions meet. The distance d is a share of the domain and not a
cell: the same function is learnt whatever the cells. Between cell centres values lie on straight lines, and past an
end that is not periodic the last value goes on. A neighbour is a mean of values of v, so on every grid
|N v_c| <= 2 |w_c| max |v_c|. Shapes: fields `(channel, batch, *space)`, weights `(channel,)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis


class Neighbours(nn.Module):
    """See the file's equation; silent before training."""

    def __init__(self, width: int, reach: float) -> None:
        super().__init__()
        self.reach = reach
        self.weight = nn.Parameter(torch.zeros(width))

    def forward(
        self,
        start: Float[Tensor, "channel batch *space"],
        field: Float[Tensor, "channel batch *space"],
        axes: Sequence[Axis],
    ) -> Float[Tensor, "channel batch *space"]:
        """`start` + N field, summed in place of `start`, whose maker does not need it."""
        moves = _moves(len(self.weight), axes, self.reach)
        total: Tensor = _AddNeighbours.apply(start, field, self.weight, moves)  # type: ignore[no-untyped-call]
        return total


class _Move(NamedTuple):
    """Some channels' cells and the neighbours that they see, along one axis, with a share of the whole."""

    first: int
    channels: int
    place: int
    cells: tuple[int, int]
    neighbours: tuple[int, int]
    share: float

    def of_cells(self, field: Tensor) -> Tensor:
        """The cells that look."""
        return field.narrow(0, self.first, self.channels).narrow(self.place, *self.cells)

    def of_neighbours(self, field: Tensor) -> Tensor:
        """What they see."""
        return field.narrow(0, self.first, self.channels).narrow(self.place, *self.neighbours)

    def of_weight(self, weight: Tensor, ndim: int) -> Tensor:
        """How much of it counts."""
        part = weight.narrow(0, self.first, self.channels)
        return (part * self.share if self.share != 1 else part).view(-1, *[1] * (ndim - 1))


def _moves(width: int, axes: Sequence[Axis], reach: float) -> list[_Move]:
    """Who looks where: a neighbour between two centres is reached by two whole moves."""
    directions = [(place, axis, side) for place, axis in enumerate(axes, start=2) for side in (0, 1)]
    bounds = [round(width * number / len(directions)) for number in range(len(directions) + 1)]
    moves = []
    for (place, axis, side), first, end in zip(directions, bounds, bounds[1:], strict=False):
        distance = reach * axis.cells
        whole = math.floor(distance)
        for cells, share in ((whole, 1 - distance + whole), (whole + 1, distance - whole)):
            if share and first < end:
                pairs = _pairs(axis.cells, cells, axis.periodic, side)
                moves += [_Move(first, end - first, place, here, there, share) for here, there in pairs]
    return moves


def _pairs(size: int, cells: int, wraps: bool, side: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """(start, length) of cells and of their neighbours: those inside the axis, and those past its end."""
    if cells == 0:
        return [((0, size), (0, size))]
    low, high = (0, size - cells), (cells, size - cells)
    head, tail = (0, cells), (size - cells, cells)
    if side == 0:
        return [(low, high), (tail, head if wraps else (size - 1, 1))]
    return [(high, low), (head, tail if wraps else (0, 1))]


class _AddNeighbours(torch.autograd.Function):
    """Forward and backward of `Neighbours`: a few passes over slices of the field."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, field: Tensor, weight: Tensor, moves: list[_Move]) -> Tensor:
        ctx.mark_dirty(start)
        ctx.save_for_backward(field, weight)
        ctx.moves = moves
        start.addcmul_(field, weight.view(-1, *[1] * (field.ndim - 1)), value=-1)
        for move in moves:
            move.of_cells(start).addcmul_(move.of_neighbours(field), move.of_weight(weight, field.ndim))
        return start

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        field, weight = ctx.saved_tensors
        gradient = gradients[0]
        inside = list(range(1, field.ndim))
        into_field = gradient * weight.neg().view(-1, *[1] * (field.ndim - 1))
        into_weight = (gradient * field).sum(inside).neg_()
        for move in ctx.moves:
            change, seen = move.of_cells(gradient), move.of_neighbours(field)
            if seen.shape != change.shape:  # all cells past an end see the last one
                change = change.sum(move.place, keepdim=True)
            into_weight.narrow(0, move.first, move.channels).add_((change * seen).sum(inside), alpha=move.share)
            move.of_neighbours(into_field).addcmul_(change, move.of_weight(weight, field.ndim))
        return gradient, into_field, into_weight, None
