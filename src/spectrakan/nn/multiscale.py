"""The multi-scale trunk: a fine branch and, if there is one, a coarse branch, added.

    f = F_fine(u) + U_s F_coarse(D_s u),     F = K_L o sigma o K_{L-1} o ... o sigma o K_1 o lift

D_s takes means over ceil(n / s) equal cells along each axis, U_s interpolates linearly between their centres.
Shapes: in `(channels, batch, *space)`, out `(width, batch, *space)`.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, as_like, kept
from spectrakan.nn.block import Block, BlockSettings
from spectrakan.nn.conditioning import UNCONDITIONED, Condition
from spectrakan.nn.embedding import with_coordinates
from spectrakan.nn.execution import force_fp32
from spectrakan.nn.pointwise import activate
from spectrakan.nn.products import in_memory
from spectrakan.nn.residual import ResidualLayer, residual_layers
from spectrakan.numerics.resample import along_axis, line_matrix, overlap_matrix


class Branch(nn.Module):
    """Lift the input with its coordinates, then blocks with a nonlinearity between them, none after the last.

    `located` are the axes whose coordinates the lift receives.
    """

    def __init__(self, channels: int, num_layers: int, config: BlockSettings, located: Sequence[int]) -> None:
        super().__init__()
        self.located = tuple(located)
        self.activation_name, self.between = config.activation, config.kind != "residual"
        self.lift = nn.Linear(channels + len(self.located), config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(num_layers))

    @force_fp32
    def forward(self, field: Tensor, axes: Sequence[Axis], conditions: Sequence[Condition] = ()) -> Tensor:
        """`(channels, batch, *space)` -> `(width, batch, *space)`; `conditions[layer]` come from the token."""
        features = lifted(self.lift.weight, self.lift.bias, with_coordinates(field, axes, self.located))
        blocks = [cast(Block, block) for block in self.blocks]
        given = conditions or [UNCONDITIONED] * len(blocks)
        layers = [block.residual_layer(condition) for block, condition in zip(blocks, given, strict=True)]
        if None not in layers:
            return residual_layers(features, axes, cast(list[ResidualLayer], layers))
        for number, block in enumerate(blocks):
            if number and self.between:
                features = activate(self.activation_name, features)
            features = block(features, axes, given[number])
        return features


def lifted(
    weight: Float[Tensor, "out channel"], bias: Float[Tensor, " out"], field: Float[Tensor, "channel batch *space"]
) -> Float[Tensor, "out batch *space"]:
    """`weight` field + `bias` in every cell, `(in, batch, *space)` -> `(out, batch, *space)`.

    The channels of the result lie together in each cell.
    """
    return in_memory(F.linear(in_memory(field.movedim(0, -1)), weight, bias)).movedim(-1, 0)


class MultiscaleTrunk(nn.Module):
    """See the file's equation; without a coarse branch it is F_fine alone."""

    def __init__(self, fine: Branch, coarse: Branch | None, stride: int) -> None:
        super().__init__()
        self.fine, self.coarse, self.stride = fine, coarse, stride

    def forward(self, field: Tensor, axes: Sequence[Axis], conditions: Sequence[Condition] = ()) -> Tensor:
        """Features of the field; the conditions of the fine layers come before those of the coarse ones."""
        split = len(self.fine.blocks)
        features: Tensor = self.fine(field, axes, conditions[:split])
        if self.coarse is None:
            return features
        coarse_axes = [axis.coarse(self.stride) for axis in axes]
        small = self.coarse(transferred(_means, field, axes, coarse_axes), coarse_axes, conditions[split:])
        return features.add_(transferred(_lines, small, coarse_axes, axes))


MatrixOf = Callable[[Axis, Axis, Tensor], Tensor]
"""From old and new cells of an axis to a matrix `(new, old)`, right for every size."""


def transferred(matrix_of: MatrixOf, field: Tensor, old: Sequence[Axis], new: Sequence[Axis]) -> Tensor:
    """A field from its old to its new cells, axis by axis.

    Where the axis is cut among processes, new cells that need old ones of another part are summed over all parts;
    they are the few at the ends of parts, because rows of the matrix have few entries.
    """
    for dim, (before, after) in enumerate(zip(old, new, strict=True), start=2):
        if before.space is None:
            field = along_axis(matrix_of(before, after, field), field, dim)
            continue
        mine, shared, numbers, held = _parts_of_matrix(matrix_of, before, after, field)
        sums = after.summed(along_axis(shared, field, dim))
        field = along_axis(mine, field, dim).index_add(dim, held, sums.index_select(dim, numbers))
    return field


@kept
def _parts_of_matrix(matrix_of: MatrixOf, old: Axis, new: Axis, like: Tensor) -> tuple[Tensor, ...]:
    """The block of this process, its part of shared rows, which of these are its own, and where among its cells."""
    matrix = matrix_of(cast(Axis, old.whole), cast(Axis, new.whole), like)
    owner, source = (
        torch.bucketize(torch.arange(axis.total), torch.tensor(axis.ends[1:-1]), right=True) for axis in (new, old)
    )
    foreign = (owner[:, None] != source).to(matrix.device)
    rows = (foreign & (matrix != 0)).any(1).nonzero()[:, 0]
    columns = slice(old.start, old.start + old.cells)
    shared = torch.where(foreign, matrix, 0.0)[rows, columns].contiguous()
    held = (rows >= new.start) & (rows < new.start + new.cells)
    block = matrix[new.start : new.start + new.cells, columns].contiguous()
    return block, shared, held.nonzero()[:, 0], rows[held] - new.start


@kept
def _means(axis: Axis, larger: Axis, like: Tensor) -> Tensor:
    """D_s: means over coarse cells."""
    return as_like(overlap_matrix(axis.edges, larger.edges), like)


@kept
def _lines(larger: Axis, axis: Axis, like: Tensor) -> Tensor:
    """U_s: straight lines between coarse cell centres."""
    return as_like(line_matrix(larger.centres, axis.centres, periodic=axis.periodic), like)
