"""The gated axial spectral layer: along each axis, every mode mixes the channels by a matrix of its own.

    (K v) = sum_a  F_a^{-1} [ gamma_a(k) W_a(k) F_a[v](k) ],     k below `num_modes` and below what cells resolve,

with F_a a truncated transform along axis a (`numerics.fourier`), W_a(k) a complex (or, in a real basis, real)
width x width matrix and gamma_a(k) a real gate. Weights are stored as real numbers, `(modes, in, out, 2)`.
Torch has no batched complex product on the CPU, so complex matrices act as real ones, [[W_r, -W_i], [W_i, W_r]] on
the column (x_r, x_i).
Shapes: fields `(channel, batch, *space)`; coefficients along an axis `(rows, channel, batch, *rest)`.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from spectrakan.nn.axial import AxialLayer, real_form
from spectrakan.nn.axis import Axis, axis_transforms
from spectrakan.nn.execution import Field, fused, plain_forms
from spectrakan.nn.products import analyse, analysis, synthesis, synthesise
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
        # Slices have a price in the gradient; a traced program must not compare sizes.
        whole = not torch.compiler.is_compiling() and modes == self.weight.shape[0]
        weight: Tensor = self.weight if whole else self.weight[:modes]
        gate: Tensor | None = self.gate if whole or self.gate is None else self.gate[:modes]
        if factor is not None:
            rows = multiplied(rows, factor[:modes])
        return plain_mix(rows, weight, gate)


def plain_mix(rows: Tensor, weight: Tensor, gate: Tensor | None) -> Tensor:
    """gamma(k) W(k) on coefficients `(rows, channel, batch, *rest)`, in plain operations."""
    if gate is not None:
        weight = weight * gate.view(-1, *[1] * (weight.ndim - 1))
    matrices = real_form(weight) if weight.ndim == 4 else weight.transpose(1, 2)
    return torch.bmm(matrices, rows.reshape(len(weight), matrices.shape[2], -1)).view(rows.shape)


class AxialSpectral(nn.Module):
    """The layer of this file, over any number of axes."""

    def __init__(
        self, width: int, num_modes: int, bases: Sequence[Basis], *, gates: bool = True, gain: float = 1.0
    ) -> None:
        super().__init__()
        self.num_modes, self.bases = num_modes, tuple(bases)
        gain = gain * len(self.bases) ** -0.5
        self.mixing = nn.ModuleList(ModeMixing(width, num_modes, basis, gates=gates, gain=gain) for basis in bases)

    def forward(self, field: Field, axes: Sequence[Axis], factors: Factors = ()) -> Field:
        """`(channel, batch, *space)` to the same shape; `factors[a]` `(modes, 2, channel, batch)` multiply modes."""
        if self.fuses(field, axes):
            return cast(Tensor, fused(AxialLayer, plain_axial, field, *self.parts(field, axes, factors)))
        transforms = axis_transforms(axes, self.bases, self.num_modes, field)
        _, *rows = analyse(field, None, *[transform.analysis for transform in transforms])
        rows = [axis.summed(row) for axis, row in zip(axes, rows, strict=True)]
        return synthesise(None, self.mix(rows, factors), [transform.synthesis for transform in transforms])

    def fuses(self, field: Tensor, axes: Sequence[Axis]) -> bool:
        """Whether the layer takes its form as one operation."""
        whole = field.device.type == "cpu" and all(axis.space is None for axis in axes)
        return whole and all(map(is_complex, self.bases)) and not plain_forms()

    def parts(self, field: Tensor, axes: Sequence[Axis], factors: Factors) -> list[Tensor | None]:
        """What the layer does along each axis, as `nn/axial.Part` lists it."""
        given: list[Tensor | None] = []
        transforms = axis_transforms(axes, self.bases, self.num_modes, field)
        for mixing, transform, factor in zip(self.mixing, transforms, factors or [None] * len(axes), strict=True):
            by_mode: list[Tensor | None] = [cast(Tensor, mixing.weight), cast(Tensor | None, mixing.gate), factor]
            if transform.modes != self.num_modes:  # slices have a price in the gradient
                by_mode = [None if each is None else each[: transform.modes] for each in by_mode]
            given += [transform.analysis, transform.synthesis, *by_mode]
        return given

    def mix(self, rows: Sequence[Tensor], factors: Factors = ()) -> list[Tensor]:
        """Mix the channels of every axis' coefficients."""
        by_axis = factors or [None] * len(rows)
        return [mixing(row, factor) for mixing, row, factor in zip(self.mixing, rows, by_axis, strict=True)]


def plain_axial(field: Tensor, *flat: Any) -> Tensor:
    """The layer from what it is along each axis (`nn/axial.Part`), in plain operations."""
    parts = [flat[start : start + 5] for start in range(0, len(flat), 5)]
    rows = [analysis(field, part[0], axis) for axis, part in enumerate(parts)]
    rows = [each if part[4] is None else multiplied(each, part[4]) for each, part in zip(rows, parts, strict=True)]
    mixed = [plain_mix(each, part[2], part[3]) for each, part in zip(rows, parts, strict=True)]
    return torch.stack(
        [synthesis(each, part[1], axis) for axis, (each, part) in enumerate(zip(mixed, parts, strict=True))]
    ).sum(0)


def multiplied(
    rows: Float[Tensor, "rows channel batch *rest"], factor: Float[Tensor, "modes 2 channel batch"]
) -> Float[Tensor, "rows channel batch *rest"]:
    """Multiply every complex mode of a channel and sample by its own number, given as real and imaginary part."""
    real, imaginary = factor.view(*factor.shape, *[1] * (rows.ndim - 3)).unbind(1)
    x, y = rows.unflatten(0, (-1, 2)).unbind(1)
    return torch.stack([x * real - y * imaginary, x * imaginary + y * real], dim=1).flatten(0, 1)


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
