"""The gated axial spectral layer: along each axis, every mode mixes the channels by a matrix of its own.

    (K v) = sum_a  F_a^{-1} [ gamma_a(k) W_a(k) F_a[v](k) ],     k below `num_modes` and below what cells resolve,

with F_a a truncated transform along axis a (`numerics.fourier`), W_a(k) a complex (or, in a real basis, real)
width x width matrix and gamma_a(k) a real gate. Weights are stored as real numbers, `(modes, in, out, 2)`.
Torch has no batched complex product on the CPU, so complex matrices act as real ones, [[W_r, -W_i], [W_i, W_r]] on
the column (x_r, x_i).
Shapes: fields `(channel, batch, *space)`; coefficients along an axis `(rows, channel, batch, *rest)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, AxisTransform, axis_transform
from spectrakan.nn.products import analyse, synthesise
from spectrakan.numerics.fourier import Basis, is_complex, stored_modes

Factors = Sequence[Tensor | None]
"""What multiplies the modes along each axis, None for nothing."""


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
        self,
        rows: Float[Tensor, "rows channel batch *rest"],
        factor: Float[Tensor, "modes 2 channel batch"] | None = None,
    ) -> Float[Tensor, "rows channel batch *rest"]:
        """Coefficients to the same shape; each sample may multiply the modes of its channels (`multiplied`)."""
        modes = rows.shape[0] // (2 if self.complex else 1)
        matrices = self.matrices(modes)
        if factor is not None:
            rows = multiplied(rows, factor[:modes])
        return torch.bmm(matrices, rows.reshape(modes, matrices.shape[2], -1)).view(rows.shape)

    def matrices(self, modes: int) -> Tensor:
        """gamma(k) W(k) of the first modes as real matrices that act on columns, `(modes, parts out, parts in)`."""
        # Slices have a price in the gradient; a traced program must not compare sizes.
        whole = not torch.compiler.is_compiling() and modes == self.weight.shape[0]
        weight = self.weight if whole else self.weight[:modes]
        if self.gate is not None:
            gate = self.gate if whole else self.gate[:modes]
            weight = weight * gate.view(-1, *[1] * (weight.ndim - 1))
        return real_form(weight) if self.complex else weight.transpose(1, 2)


class AxialSpectral(nn.Module):
    """The layer of this file, over any number of axes."""

    def __init__(
        self, width: int, num_modes: int, bases: Sequence[Basis], *, gates: bool = True, gain: float = 1.0
    ) -> None:
        super().__init__()
        self.num_modes, self.bases = num_modes, tuple(bases)
        gain = gain * len(self.bases) ** -0.5
        self.mixing = nn.ModuleList(ModeMixing(width, num_modes, basis, gates=gates, gain=gain) for basis in bases)

    def transforms(self, axes: Sequence[Axis], like: Tensor) -> list[AxisTransform]:
        """The transforms along all axes of a grid."""
        return [
            axis_transform(axis, basis, self.num_modes, like) for axis, basis in zip(axes, self.bases, strict=True)
        ]

    def forward(
        self, field: Float[Tensor, "channel batch *space"], axes: Sequence[Axis], factors: Factors = ()
    ) -> Float[Tensor, "channel batch *space"]:
        """`(channel, batch, *space)` to the same shape; `factors[a]` `(modes, 2, channel, batch)` multiply modes."""
        transforms = self.transforms(axes, field)
        rows = analyse(field, None, None, *[transform.analysis for transform in transforms])
        rows = tuple(axis.summed(row) for axis, row in zip(axes, rows, strict=True))
        return synthesise(None, self.mix(rows, factors), [transform.synthesis for transform in transforms])

    def mix(self, rows: Sequence[Tensor], factors: Factors = ()) -> list[Tensor]:
        """Mix the channels of every axis' coefficients."""
        by_axis = factors or [None] * len(rows)
        return [mixing(row, factor) for mixing, row, factor in zip(self.mixing, rows, by_axis, strict=True)]


def multiplied(
    rows: Float[Tensor, "rows channel batch *rest"], factor: Float[Tensor, "modes 2 channel batch"]
) -> Float[Tensor, "rows channel batch *rest"]:
    """Multiply every complex mode of a channel and sample by its own number, given as real and imaginary part."""
    real, imaginary = factor.view(*factor.shape, *[1] * (rows.ndim - 3)).unbind(1)
    x, y = rows.unflatten(0, (-1, 2)).unbind(1)
    return torch.stack([x * real - y * imaginary, x * imaginary + y * real], dim=1).flatten(0, 1)


def real_form(weight: Float[Tensor, "modes channel out 2"]) -> Float[Tensor, "modes rows columns"]:
    """Complex matrices, stored as pairs, as real ones that act on columns (real parts, imaginary parts)."""
    real, imaginary = weight.transpose(1, 2).unbind(-1)
    upper, lower = torch.cat([real, -imaginary], dim=2), torch.cat([imaginary, real], dim=2)
    return torch.cat([upper, lower], dim=1)


def multiply_modes(
    weight: Complex[Tensor, "modes channel out"], fields: Complex[Tensor, "channel batch modes"]
) -> Complex[Tensor, "out batch modes"]:
    """sum_i weight[k, i, o] fields[i, b, k] for each mode k."""
    modes, channels, out = weight.shape
    columns = torch.view_as_real(fields).permute(2, 3, 0, 1).reshape(modes, 2 * channels, -1)
    product = torch.bmm(real_form(torch.view_as_real(weight)), columns)
    pairs = product.view(modes, 2, out, -1).permute(2, 3, 0, 1).contiguous()
    result: Tensor = torch.view_as_complex(pairs)
    return result
