"""Joint spectral layers: low modes of all axes together, mixed by one matrix each.

    (K v) = F^{-1} [ W(k_1, .., k_d) F[v](k_1, .., k_d) ],     F the product of truncated transforms of all axes

`JointSpectral` takes any basis: the last axis with a complex basis keeps k >= 0 (fields are real), the other complex
ones k = 0 .. m - 1 and -(m - 1) .. -1; axes with a real basis act on real and imaginary parts alike.
`FourierLayer` is the layer of Li et al. (2021), K v + P v + b with a pointwise map: the last axis keeps
k = 0 .. m - 1, every other one k = 0 .. m - 1 and -m .. -1, one k more than its mirror image. Modes that the cells do
not resolve are left out. Weights are real numbers, `(modes.., in, out[, 2])`; the 2^(d-1) corners of other codes are
parts of it.
Shapes: fields `(channel, batch, *space)`. The transforms are products with small real matrices: few modes of many are
kept, so this is less work than a fast transform of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, axis_transform, signed_transform, two_sided_transform
from spectrakan.nn.execution import force_fp32
from spectrakan.nn.products import analyse, synthesise
from spectrakan.nn.spectral import real_form
from spectrakan.numerics.fourier import Basis, is_complex, stored_modes


class JointSpectral(nn.Module):
    """One matrix for every combination of low modes, in any basis; see the file's equation.

    With complex coefficients each complex axis in turn keeps a pair (real, imaginary) beside its modes.
    """

    def __init__(self, width: int, num_modes: int, bases: Sequence[Basis]) -> None:
        super().__init__()
        self.width, self.num_modes, self.bases = width, num_modes, tuple(bases)
        complex_axes = [axis for axis, basis in enumerate(self.bases) if is_complex(basis)]
        self.half_axis = complex_axes[-1] if complex_axes else None
        modes = [self._stored(axis) for axis in range(len(self.bases))]
        parts = 1 if self.half_axis is None else 2
        tail = (width, width) if parts == 1 else (width, width, 2)
        self.weight = nn.Parameter(torch.randn(*modes, *tail) / (parts * width) ** 0.5)

    def forward(
        self, field: Float[Tensor, "channel batch *space"], axes: Sequence[Axis]
    ) -> Float[Tensor, "channel batch *space"]:
        """`(channel, batch, *space)` to the same shape."""
        # The half axis comes first: it makes the field complex for the others.
        order = sorted(range(len(axes)), key=lambda axis: axis != self.half_axis)
        value = field[None]
        for axis in order:
            value = self._along(value, axes[axis], axis, back=False)
        value = self._mix(value)
        for axis in reversed(order):
            value = self._along(value, axes[axis], axis, back=True)
        return value[0].contiguous()

    def _signed(self, axis: int) -> bool:
        return is_complex(self.bases[axis]) and axis != self.half_axis

    def _stored(self, axis: int) -> int:
        modes = stored_modes(self.bases[axis], self.num_modes)
        return 2 * modes - 1 if self._signed(axis) else modes

    def _along(self, value: Tensor, cells: Axis, axis: int, *, back: bool) -> Tensor:
        """From cells to modes along one axis of `(parts, channel, batch, *cells or modes)`, or back."""
        dim = axis + 3
        if self._signed(axis):
            matrix = signed_transform(cells, self.bases[axis], self.num_modes, value)[int(back)]
            return on_pairs(matrix, value.movedim(dim, 1)).movedim(1, dim)
        transform = axis_transform(cells, self.bases[axis], self.num_modes, value)
        matrix = transform.synthesis if back else transform.analysis
        if axis != self.half_axis:
            return _tensordot(matrix, value, dim).movedim(0, dim)
        if back:
            rows = value.movedim(dim, 0).flatten(0, 1)
            return _tensordot(matrix, rows, 0).movedim(0, dim - 1)[None]
        pairs: Tensor = _tensordot(matrix, value[0], dim - 1).unflatten(0, (-1, 2))
        return pairs.movedim(0, dim).contiguous()

    def _mix(self, value: Tensor) -> Tensor:
        modes, batch = value.shape[3:], value.shape[2]
        weight: Tensor = self.weight
        for axis, count in enumerate(modes):
            weight = ends(weight, axis, count) if self._signed(axis) else first(weight, axis, count)
        # One row a sample (and part) against each mode's matrix as it is stored: only the field is rearranged.
        rows = value.movedim((0, 2, 1), (-3, -2, -1)).reshape(-1, value.shape[0] * batch, self.width)
        product = torch.bmm(rows, weight.reshape(rows.shape[0], self.width, -1))
        if self.half_axis is None:
            return product.view(*modes, 1, batch, self.width).movedim((-3, -2, -1), (0, 2, 1))
        # (part of the input, sample, channel, part of the weight): Re = rr - ii, Im = ri + ir.
        real, imaginary = product.view(*modes, 2, batch, self.width, 2).unbind(-4)
        mixed = torch.stack([real[..., 0] - imaginary[..., 1], real[..., 1] + imaginary[..., 0]])
        return mixed.movedim((-1, -2), (1, 2))


class FourierLayer(nn.Module):
    """The layer of the Fourier neural operator; the last axis is transformed together with P, which saves a field."""

    def __init__(self, width: int, num_modes: int, space_dims: int) -> None:
        super().__init__()
        self.width, self.num_modes = width, num_modes
        modes = [2 * num_modes] * (space_dims - 1) + [num_modes]
        # A mode's output has the variance of its input, whatever the width.
        self.weight = nn.Parameter(torch.randn(*modes, width, width, 2) / (2 * width) ** 0.5)
        self.pointwise = nn.Linear(width, width)

    @force_fp32
    def forward(
        self, field: Float[Tensor, "channel batch *space"], axes: Sequence[Axis]
    ) -> Float[Tensor, "channel batch *space"]:
        """`(channel, batch, *space)` to the same shape."""
        channels, batch, *others = field.shape[:-1]
        last = axis_transform(axes[-1], "fourier", self.num_modes, field)
        start, rows = analyse(field.flatten(1, -2), self.pointwise.weight, self.pointwise.bias, last.analysis)
        pairs = rows.view(last.modes, 2, channels, batch, *others).transpose(0, 1)
        mixed = self._between(pairs, axes[:-1]).transpose(0, 1)
        rows = mixed.reshape(2 * last.modes, channels, -1)
        return synthesise(start, [rows], [last.synthesis]).view(field.shape)

    def _between(self, value: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The other axes there and back, with W between: `(2, modes, channel, batch, *others)` to the same."""
        transforms = [two_sided_transform(axis, self.num_modes, value) for axis in axes]
        for into, _ in reversed(transforms):
            value = on_pairs(into, value.movedim(-1, 1))
        value = self._mix(value)
        for _, out in transforms:
            value = on_pairs(out, value).movedim(1, -1)
        return value

    def _mix(self, value: Tensor) -> Tensor:
        """W on `(2, *modes, channel, batch)`, one real matrix product a mode."""
        modes, batch = value.shape[1:-2], value.shape[-1]
        weight: Tensor = self.weight
        for axis, count in enumerate(modes[:-1]):
            weight = ends(weight, axis, count)
        weight = first(weight, len(modes) - 1, modes[-1])
        columns = value.movedim(0, -3).reshape(math.prod(modes), 2 * self.width, batch)
        product = torch.bmm(real_form(weight.flatten(0, len(modes) - 1)), columns)
        return product.view(*modes, 2, self.width, batch).movedim(-3, 0)


def first(weight: Tensor, axis: int, count: int) -> Tensor:
    """The first `count` entries along an axis."""
    # Slices have a price in the gradient; a traced program must not compare sizes.
    whole = not torch.compiler.is_compiling() and count == weight.shape[axis]
    return weight if whole else weight.narrow(axis, 0, count)


def ends(weight: Tensor, axis: int, count: int) -> Tensor:
    """`count` entries along an axis of signed orders, whose highest are in the middle: half of them from each end."""
    stored = weight.shape[axis]
    if count == stored:
        return weight
    low = (count + 1) // 2
    parts = [weight.narrow(axis, 0, low), weight.narrow(axis, stored - (count - low), count - low)]
    return torch.cat(parts, dim=axis)


def on_pairs(matrix: Tensor, value: Tensor) -> Tensor:
    """A matrix on (real parts, imaginary parts) along axis 1 of `(2, n, ..)`."""
    pairs: Tensor = _tensordot(matrix, value.flatten(0, 1), 0).unflatten(0, (2, -1))
    return pairs


def _tensordot(matrix: Tensor, value: Tensor, dim: int) -> Tensor:
    """A matrix along one dimension, which becomes the first."""
    product: Tensor = torch.tensordot(matrix, value, dims=([1], [dim]))
    return product
