"""The gated axial spectral layer: along each axis, every mode mixes the channels by a matrix of its own.

    (K v) = sum_a  F_a^{-1} [ gamma_a(k) W_a(k) F_a[v](k) ],     k below `num_modes` and below what cells resolve,

with F_a a truncated transform along axis a (`numerics.fourier`), W_a(k) a complex (or, in a real basis, real)
width x width matrix and gamma_a(k) a real gate. Weights are stored as real numbers, `(modes, in, out, 2)`.
Torch has no batched complex product on the CPU, so complex matrices act as real ones, [[W_r, -W_i], [W_i, W_r]] on
the column (x_r, x_i).
Shapes: fields `(channel, batch, *space)`; coefficients along an axis `(rows, channel, batch, *rest)`.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from spectrakan.nn.axial import Part, real_form
from spectrakan.nn.axis import Axis, AxisTransform, axis_transforms, over_parts
from spectrakan.nn.execution import Field, plain_forms
from spectrakan.nn.products import analyse, analysis, synthesise
from spectrakan.numerics.fourier import Basis, is_complex, stored_modes
from spectrakan.numerics.quadrature import weighted_mean

Factors = Sequence[Tensor | None]
"""What multiplies the modes along each axis, None for nothing."""


class ModeMixing(nn.Module):
    """The weights of gamma(k) W(k) along one axis."""

    def __init__(self, width: int, num_modes: int, basis: Basis, *, gates: bool = True, gain: float = 1.0) -> None:
        super().__init__()
        self.complex = is_complex(basis)
        modes = stored_modes(basis, num_modes)
        # A mode's output has the variance of its input times gain², whatever the width.
        shape = (modes, width, width, 2) if self.complex else (modes, width, width)
        parts = 2 if self.complex else 1
        self.weight = nn.Parameter(torch.randn(shape) * gain / (parts * width) ** 0.5)
        self.gate = nn.Parameter(torch.ones(modes)) if gates else None

    def part(self, transform: AxisTransform, factor: Tensor | None) -> Part:
        """What the layer does along this axis, with as many modes as the cells resolve."""
        by_mode: list[Any] = [self.weight, self.gate, factor]
        if transform.modes != len(self.weight):  # slices have a price in the gradient
            by_mode = [None if each is None else each[: transform.modes] for each in by_mode]
        return Part(transform.analysis, transform.synthesis, *by_mode)

    def forward(self, rows: Float[Tensor, "rows channel batch *rest"], part: Part) -> Tensor:
        """`mixed_modes` of the coefficients."""
        return mixed_modes(rows, part)


class AxialSpectral(nn.Module):
    """The layer of this file, over any number of axes."""

    def __init__(
        self, width: int, num_modes: int, bases: Sequence[Basis], *, gates: bool = True, gain: float = 1.0
    ) -> None:
        super().__init__()
        self.num_modes, self.bases = num_modes, tuple(bases)
        gain = gain * len(self.bases) ** -0.5
        self.mixing = nn.ModuleList(ModeMixing(width, num_modes, basis, gates=gates, gain=gain) for basis in bases)

    def forward(
        self,
        field: Field,
        axes: Sequence[Axis],
        factors: Factors = (),
        *,
        pointwise: nn.Linear | None = None,
        scale: Callable[[Tensor], Tensor] | None = None,
    ) -> Field:
        """`(channel, batch, *space)` to the same shape; `factors[a]` `(modes, 2, channel, batch)` multiply modes.

        A `pointwise` map beside it and a `scale` as a function of the result's means `(batch, channel)` need no field
        of full size in between: the means are known from the coefficients, which the scale multiplies, and the
        synthesis adds to the pointwise product in place.
        """
        transforms = axis_transforms(axes, self.bases, self.num_modes, field)
        start, *rows = analyse(field, pointwise, *[transform.analysis for transform in transforms])
        given = zip(self.mixing, axes, rows, self.parts(transforms, factors), strict=True)
        mixed = [mixing(axis.summed(row), part) for mixing, axis, row, part in given]
        if scale is not None:
            scales = scale(_mean_of_synthesis(mixed, transforms, axes).T).T
            mixed = [row * scales.view(*scales.shape, *[1] * (row.ndim - 3)) for row in mixed]
        return synthesise(start, mixed, [transform.synthesis for transform in transforms])

    def fuses(self, field: Tensor, axes: Sequence[Axis]) -> bool:
        """Whether the layer can be part of one operation, `nn/residual`."""
        whole = field.device.type == "cpu" and all(axis.space is None for axis in axes)
        return whole and all(map(is_complex, self.bases)) and not plain_forms()

    def parts(self, transforms: Sequence[AxisTransform], factors: Factors = ()) -> list[Part]:
        """What the layer does along each axis."""
        given = zip(self.mixing, transforms, factors or [None] * len(transforms), strict=True)
        return [cast(ModeMixing, mixing).part(transform, factor) for mixing, transform, factor in given]


def _mean_of_synthesis(mixed: Sequence[Tensor], transforms: Sequence[AxisTransform], axes: Sequence[Axis]) -> Tensor:
    """Mean over space of the sum of syntheses, from the coefficients: `(channel, batch)`."""
    parts: list[Tensor] = []
    cut: list[Tensor] = []
    for axis, (rows, transform) in enumerate(zip(mixed, transforms, strict=True)):
        along = rows[0] if transform.one_mean else torch.tensordot(transform.mean, rows, dims=([0], [0]))
        others = [other.weights for number, other in enumerate(transforms) if number != axis]
        # Coefficients along a cut axis are known to all processes, those along other axes lie on this one's cells.
        (parts if axes[axis].space is None else cut).append(weighted_mean(along, others))
    whole = [over_parts(torch.stack(parts).sum(0), axes)] if parts else []
    return torch.stack([*whole, *cut]).sum(0)


def plain_axial(field: Tensor, *flat: Any) -> Tensor:
    """The layer from its parts, one after the other, in plain operations."""
    size = len(Part._fields)
    parts = [Part(*flat[start : start + size]) for start in range(0, len(flat), size)]
    mixed = [mixed_modes(analysis(field, part.analysis, axis), part) for axis, part in enumerate(parts)]
    return synthesise(None, mixed, [part.synthesis for part in parts])


def mixed_modes(rows: Float[Tensor, "rows channel batch *rest"], part: Part) -> Tensor:
    """gamma(k) W(k) on the coefficients along an axis, after the samples' factors: one matrix product a mode."""
    rows = rows if part.factor is None else multiplied(rows, part.factor)
    weight = part.weight
    if part.gate is not None:
        weight = weight * part.gate.view(-1, *[1] * (weight.ndim - 1))
    matrices = real_form(weight) if weight.ndim == 4 else weight.transpose(1, 2)
    return torch.bmm(matrices, rows.reshape(len(weight), matrices.shape[2], -1)).view(rows.shape)


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
