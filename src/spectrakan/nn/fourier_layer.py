"""The layer of the Fourier neural operator: low modes of all axes mixed by matrices, plus a pointwise map.

    v -> F^{-1} [ W(k_1, .., k_d) F[v](k_1, .., k_d) ] + P v + b

The last axis keeps k = 0 .. m - 1 (fields are real), every other one k = 0 .. m - 1 and -m .. -1: the mode set of
Li et al. (2021), which has one k more than its mirror image. Modes that the cells do not resolve are left out.
Weights are real numbers, `(2m, .., 2m, m, in, out, 2)`; the 2^(d-1) corners of other codes are parts of it.
Shapes: fields `(channel, batch, *space)`. The transforms are products with small real matrices: few modes of
many are kept, so that is less work than a fast transform of all. The last axis is done together with P, which
saves a field of full size; what follows it is small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, axis_transform, two_sided_transform
from spectrakan.nn.mode_products import real_form
from spectrakan.nn.precision import unmixed
from spectrakan.nn.products import analyse, synthesise


class FourierLayer(nn.Module):
    """See the file's equation."""

    def __init__(self, width: int, num_modes: int, space_dims: int) -> None:
        super().__init__()
        self.width, self.num_modes = width, num_modes
        modes = [2 * num_modes] * (space_dims - 1) + [num_modes]
        # A mode's output has the variance of its input, whatever the width.
        self.weight = nn.Parameter(torch.randn(*modes, width, width, 2) / (2 * width) ** 0.5)
        self.pointwise = nn.Linear(width, width)

    @unmixed
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
            value = _on_pairs(into, value.movedim(-1, 1))
        value = self._mix(value)
        for _, out in transforms:
            value = _on_pairs(out, value).movedim(1, -1)
        return value

    def _mix(self, value: Tensor) -> Tensor:
        """W on `(2, *modes, channel, batch)`, one real matrix product a mode."""
        modes, batch = value.shape[1:-2], value.shape[-1]
        weight: Tensor = self.weight
        for axis, count in enumerate(modes[:-1]):
            # Of the frequencies 0 .. m - 1, -m .. -1 the highest are in the middle.
            weight = _ends(weight, axis, count)
        # Slices have a price in the gradient; a traced program must not compare sizes.
        if torch.compiler.is_compiling() or modes[-1] != self.num_modes:
            weight = weight.narrow(len(modes) - 1, 0, modes[-1])
        columns = value.movedim(0, -3).reshape(math.prod(modes), 2 * self.width, batch)
        product = torch.bmm(real_form(weight.flatten(0, len(modes) - 1)), columns)
        return product.view(*modes, 2, self.width, batch).movedim(-3, 0)


def _ends(weight: Tensor, axis: int, count: int) -> Tensor:
    """`count` entries along an axis: the first half of them (rounded up) from its start, the others from its end."""
    stored = weight.shape[axis]
    if count == stored:
        return weight
    first = (count + 1) // 2
    parts = [weight.narrow(axis, 0, first), weight.narrow(axis, stored - (count - first), count - first)]
    return torch.cat(parts, dim=axis)


def _on_pairs(matrix: Tensor, value: Tensor) -> Tensor:
    """A matrix on (real parts, imaginary parts) along axis 1 of `(2, n, ..)`."""
    product = torch.tensordot(matrix, value.flatten(0, 1), dims=([1], [0]))
    pairs: Tensor = product.unflatten(0, (2, -1))
    return pairs
