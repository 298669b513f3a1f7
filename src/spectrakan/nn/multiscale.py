"""The multi-scale trunk (AMFNO): a fine branch and a coarse one, added.

    f = F_fine(u) + U_s F_coarse(D_s u),     F = K_L o sigma o K_{L-1} o ... o sigma o K_1 o lift

D_s takes means over ceil(n / s) equal cells along each axis, U_s draws lines between their centres.
Shapes: in `(channels, batch, *space)`, out `(width, batch, *space)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spectrakan.nn.activation import activate
from spectrakan.nn.axis import Axis
from spectrakan.nn.block import Block, BlockSettings
from spectrakan.nn.embedding import pointwise, with_coordinates
from spectrakan.nn.lift import Lift
from spectrakan.numerics.resample import block_mean, interpolation_matrix, overlap_matrix, upsample_lines


class Branch(nn.Module):
    """Lift the input with its coordinates, then blocks with a nonlinearity between them, none after the last.

    `located` are the axes whose coordinates the lift sees.
    """

    def __init__(
        self, trust: Sequence[float], num_layers: int, choices: BlockSettings, located: Sequence[int]
    ) -> None:
        super().__init__()
        self.located = tuple(located)
        self.activation_name, self.between = choices.activation, choices.kind != "residual"
        self.lift = Lift(trust, choices.width)
        self.blocks = nn.ModuleList(Block(choices) for _ in range(num_layers))

    def forward(
        self, field: Tensor, axes: Sequence[Axis], gate_factors: Sequence[Sequence[Tensor]] | None = None
    ) -> Tensor:
        """`(channels, batch, *space)` -> `(width, batch, *space)`; `gate_factors[layer][axis]` `(batch, modes)`."""
        features = pointwise(self.lift.weight, self.lift.bias, with_coordinates(field, axes, self.located))
        for number, block in enumerate(self.blocks):
            if number and self.between:
                features = activate(self.activation_name, features)
            features = block(features, axes, gate_factors[number] if gate_factors else None)
        return features


class MultiscaleTrunk(nn.Module):
    """See the file's equation; without a coarse branch it is F_fine alone."""

    def __init__(self, fine: Branch, coarse: Branch | None, stride: int) -> None:
        super().__init__()
        self.fine, self.coarse, self.stride = fine, coarse, stride

    def forward(
        self, field: Tensor, axes: Sequence[Axis], gate_factors: Sequence[Sequence[Tensor]] | None = None
    ) -> Tensor:
        """Features of the field; the factors of the fine layers come before those of the coarse ones."""
        split = len(self.fine.blocks)
        features: Tensor = self.fine(field, axes, gate_factors[:split] if gate_factors else None)
        if self.coarse is None:
            return features
        coarse_axes = [axis.coarse(self.stride) for axis in axes]
        small = downsample(field, axes, coarse_axes, self.stride)
        small = self.coarse(small, coarse_axes, gate_factors[split:] if gate_factors else None)
        return features.add_(upsample(small, axes, coarse_axes, self.stride))


def downsample(field: Tensor, axes: Sequence[Axis], coarse: Sequence[Axis], stride: int) -> Tensor:
    """D_s: means over coarse cells, axis by axis; every axis' overlaps are one matrix, right for every size."""
    for place, (axis, larger) in enumerate(zip(axes, coarse, strict=True), start=2):
        if _whole_factor(axis, stride):
            field = block_mean(field, place, stride)
        else:
            matrix = overlap_matrix(axis.edges, larger.edges).to(field.dtype).to(field.device)
            field = torch.tensordot(matrix, field, dims=([1], [place])).movedim(0, place)
    return field.contiguous()


def upsample(field: Tensor, axes: Sequence[Axis], coarse: Sequence[Axis], stride: int) -> Tensor:
    """U_s: straight lines between coarse cell centres, axis by axis."""
    for place, (axis, larger) in enumerate(zip(axes, coarse, strict=True), start=2):
        if _whole_factor(axis, stride):
            field = upsample_lines(field, place, stride, periodic=axis.periodic)
        else:
            matrix = interpolation_matrix(axis.centres, larger.cells, periodic=axis.periodic)
            field = torch.tensordot(matrix.to(field.dtype).to(field.device), field, dims=([1], [place]))
            field = field.movedim(0, place)
    return field


def _whole_factor(axis: Axis, stride: int) -> bool:
    """Whether the fast forms hold; while a program is traced the general one serves every size."""
    return not torch.compiler.is_compiling() and axis.uniform and axis.cells % stride == 0
