"""The gated axial spectral layer: along each axis, every mode mixes the channels by a matrix of its own.

    (K v) = sum_a  F_a^{-1} [ gamma_a(k) W_a(k) F_a[v](k) ],     k below `num_modes` and below what cells resolve,

with F_a a truncated transform along axis a (`numerics.fourier`), W_a(k) a complex (or, in a real basis, real)
width x width matrix and gamma_a(k) a real gate. Weights are stored as real numbers, `(modes, in, out, 2)`.
Shapes: fields `(channel, batch, *space)`; coefficients along an axis `(rows, channel, batch, *rest)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, AxisTransform, axis_transform
from spectrakan.nn.products import analyse, synthesise
from spectrakan.numerics.fourier import Basis, is_complex, stored_modes


class ModeMixing(nn.Module):
    """gamma(k) W(k) along one axis: one matrix product a mode, the gate folded into the matrix."""

    def __init__(self, width: int, num_modes: int, basis: Basis, *, gates: bool = True, gain: float = 1.0) -> None:
        super().__init__()
        self.complex = is_complex(basis)
        modes = stored_modes(basis, num_modes)
        # A mode's output has the variance of its input times gain², whatever the width.
        shape = (modes, width, width, 2) if self.complex else (modes, width, width)
        parts = 2 if self.complex else 1
        self.weight = nn.Parameter(torch.randn(shape) * gain / (parts * width) ** 0.5)
        self.gate = nn.Parameter(torch.ones(modes)) if gates else None

    def forward(
        self, rows: Float[Tensor, "rows channel batch *rest"], gate_factor: Float[Tensor, "batch modes"] | None = None
    ) -> Float[Tensor, "rows channel batch *rest"]:
        """Coefficients `(rows, channel, batch, *rest)` to the same shape; `gate_factor` `(batch, modes)`."""
        parts = 2 if self.complex else 1
        modes = rows.shape[0] // parts
        matrices = self.matrices(modes)
        if gate_factor is not None:
            factor = gate_factor[:, :modes].T.repeat_interleave(parts, 0)
            rows = rows * factor.view(*factor.shape[:1], 1, factor.shape[1], *[1] * (rows.ndim - 3))
        return torch.bmm(matrices, rows.reshape(modes, matrices.shape[2], -1)).view(rows.shape)

    def matrices(self, modes: int) -> Tensor:
        """gamma(k) W(k) of the first modes as real matrices that act on columns, `(modes, parts out, parts in)`."""
        # Slices have a price in the gradient; a traced program must not compare sizes.
        whole = not torch.compiler.is_compiling() and modes == self.weight.shape[0]
        weight = self.weight if whole else self.weight[:modes]
        if self.gate is not None:
            gate = self.gate if whole else self.gate[:modes]
            weight = weight * gate.view(-1, *[1] * (weight.ndim - 1))
        if not self.complex:
            return weight.transpose(1, 2)
        real, imaginary = weight.transpose(1, 2).unbind(-1)
        upper, lower = torch.cat([real, -imaginary], dim=2), torch.cat([imaginary, real], dim=2)
        return torch.cat([upper, lower], dim=1)


class AxialSpectral(nn.Module):
    """The layer of this file, over any number of axes; `sequential` applies the axes one after the other."""

    def __init__(
        self,
        width: int,
        num_modes: int,
        bases: Sequence[Basis],
        *,
        gates: bool = True,
        sequential: bool = False,
    ) -> None:
        super().__init__()
        self.num_modes, self.bases, self.sequential = num_modes, tuple(bases), sequential
        gain = 1.0 if sequential else len(self.bases) ** -0.5
        self.mixing = nn.ModuleList(ModeMixing(width, num_modes, basis, gates=gates, gain=gain) for basis in bases)

    def transforms(self, axes: Sequence[Axis], like: Tensor) -> list[AxisTransform]:
        """The transforms along all axes of a grid."""
        return [
            axis_transform(axis, basis, self.num_modes, like) for axis, basis in zip(axes, self.bases, strict=True)
        ]

    def forward(
        self,
        field: Float[Tensor, "channel batch *space"],
        axes: Sequence[Axis],
        gate_factors: Sequence[Tensor] | None = None,
    ) -> Float[Tensor, "channel batch *space"]:
        """`(channel, batch, *space)` to the same shape; `gate_factors[a]` `(batch, modes)` scale the gates."""
        transforms = self.transforms(axes, field)
        if self.sequential:
            return self._one_after_another(field, transforms, gate_factors)
        rows = analyse(field, None, None, *[transform.analysis for transform in transforms])
        mixed = self.mix(rows, gate_factors)
        return synthesise(None, mixed, [transform.synthesis for transform in transforms])

    def mix(self, rows: Sequence[Tensor], gate_factors: Sequence[Tensor] | None = None) -> list[Tensor]:
        """Mix the channels of every axis' coefficients."""
        factors: Sequence[Tensor | None] = gate_factors or [None] * len(rows)
        return [mixing(row, factor) for mixing, row, factor in zip(self.mixing, rows, factors, strict=True)]

    def _one_after_another(
        self, field: Tensor, transforms: Sequence[AxisTransform], gate_factors: Sequence[Tensor] | None
    ) -> Tensor:
        factors: Sequence[Tensor | None] = gate_factors or [None] * len(transforms)
        for axis, (mixing, transform, factor) in enumerate(zip(self.mixing, transforms, factors, strict=True)):
            rows = torch.tensordot(transform.analysis, field, dims=([1], [axis + 2]))
            field = torch.tensordot(transform.synthesis, mixing(rows, factor), dims=([1], [0])).movedim(0, axis + 2)
        return field.contiguous()
