"""The joint spectral layer: low modes of all axes together, as in the Fourier neural operator.

    (K v) = F^{-1} [ W(k_1, .., k_d) F[v](k_1, .., k_d) ],     F the product of truncated transforms of all axes.

The last axis with a complex basis keeps k >= 0 (fields are real), the other complex ones both signs; axes with
a real basis act on real and imaginary parts alike. Weights are real numbers, `(modes.., in, out[, 2])`.
Shapes: fields `(channel, batch, *space)`; with complex coefficients each complex axis in turn keeps a pair
(real, imaginary) beside its modes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, axis_transform, signed_transform
from spectrakan.numerics.fourier import Basis, is_complex, stored_modes


class JointSpectral(nn.Module):
    """One matrix for every combination of low modes; see the file's equation."""

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
        mixed = self._mix(self._analyse(field, axes), axes)
        return self._synthesise(mixed, axes).contiguous()

    def _signed(self, axis: int) -> bool:
        return is_complex(self.bases[axis]) and axis != self.half_axis

    def _stored(self, axis: int) -> int:
        modes = stored_modes(self.bases[axis], self.num_modes)
        return 2 * modes - 1 if self._signed(axis) else modes

    def _order(self, dims: int) -> list[int]:
        """The half axis comes first: it makes the field complex for the others."""
        first = [] if self.half_axis is None else [self.half_axis]
        return first + [axis for axis in range(dims) if axis != self.half_axis]

    def _analyse(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """Coefficients `(parts, channel, batch, *modes)`."""
        value = field[None]
        for axis in self._order(len(axes)):
            place = axis + 3
            if axis == self.half_axis:
                transform = axis_transform(axes[axis], self.bases[axis], self.num_modes, field)
                value = torch.tensordot(transform.analysis, value[0], dims=([1], [place - 1]))
                value = value.unflatten(0, (-1, 2)).movedim(0, place).contiguous()
            elif self._signed(axis):
                into, _ = signed_transform(axes[axis], self.bases[axis], self.num_modes, field)
                value = _along_pairs(into, value, place)
            else:
                transform = axis_transform(axes[axis], self.bases[axis], self.num_modes, field)
                value = torch.tensordot(transform.analysis, value, dims=([1], [place])).movedim(0, place)
        return value

    def _synthesise(self, value: Tensor, axes: Sequence[Axis]) -> Tensor:
        for axis in reversed(self._order(len(axes))):
            place = axis + 3
            if axis == self.half_axis:
                transform = axis_transform(axes[axis], self.bases[axis], self.num_modes, value)
                rows = value.movedim(place, 0).flatten(0, 1)
                value = torch.tensordot(transform.synthesis, rows, dims=([1], [0])).movedim(0, place - 1)[None]
            elif self._signed(axis):
                _, out = signed_transform(axes[axis], self.bases[axis], self.num_modes, value)
                value = _along_pairs(out, value, place)
            else:
                transform = axis_transform(axes[axis], self.bases[axis], self.num_modes, value)
                value = torch.tensordot(transform.synthesis, value, dims=([1], [place])).movedim(0, place)
        return value[0]

    def _mix(self, value: Tensor, axes: Sequence[Axis]) -> Tensor:
        weight: Tensor = self.weight
        for axis in range(len(axes)):
            weight = self._keep(weight, axis, value.shape[axis + 3])
        modes = value.shape[3:]
        # One row a sample (and part) against each mode's matrix as it is stored: nothing is rearranged but the field.
        rows = value.movedim((0, 2, 1), (-3, -2, -1)).reshape(-1, value.shape[0] * value.shape[2], self.width)
        product = torch.bmm(rows, weight.reshape(rows.shape[0], self.width, -1))
        if self.half_axis is None:
            return product.view(*modes, 1, value.shape[2], self.width).movedim((-3, -2, -1), (0, 2, 1))
        # (part of the input, sample, channel, part of the weight): Re = rr - ii, Im = ri + ir.
        real, imaginary = product.view(*modes, 2, value.shape[2], self.width, 2).unbind(-4)
        mixed = torch.stack([real[..., 0] - imaginary[..., 1], real[..., 1] + imaginary[..., 0]])
        return mixed.movedim((-1, -2), (1, 2))

    def _keep(self, weight: Tensor, axis: int, modes: int) -> Tensor:
        """The weights of the modes that the grid resolves; signed axes lose their highest from the middle."""
        if modes == weight.shape[axis]:
            return weight
        if not self._signed(axis):
            return weight.narrow(axis, 0, modes)
        positive = (modes + 1) // 2
        negative = modes - positive
        parts = [
            weight.narrow(axis, 0, positive),
            weight.narrow(axis, weight.shape[axis] - negative, negative),
        ]
        return torch.cat(parts, dim=axis)


def _along_pairs(matrix: Tensor, value: Tensor, place: int) -> Tensor:
    """A matrix on (real parts, imaginary parts) along axis `place` of `(2, ..)`."""
    stacked = value.movedim(place, 1).flatten(0, 1)
    product = torch.tensordot(matrix, stacked, dims=([1], [0]))
    pairs: Tensor = product.unflatten(0, (2, -1))
    return pairs.movedim(1, place)
