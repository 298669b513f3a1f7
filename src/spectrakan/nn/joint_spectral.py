"""The joint spectral layer: low modes of all axes together, mixed by one matrix each (Li et al. 2021).

    (K v) = F^{-1} [ W(k_1, .., k_d) F[v](k_1, .., k_d) ],     F the product of truncated transforms of all axes

The last axis keeps k = 0 .. m - 1, because fields are real, every other one k = 0 .. m - 1 and -m .. -1, one k more
than its mirror image. Modes that the cells do not resolve are left out. Weights are real numbers,
`(modes.., in, out, 2)`; the 2^(d-1) corners of other codes are parts of it.
Shapes: fields `(channel, batch, *space)`. The transforms are products with small real matrices: few modes of many are
kept, so this is less work than a fast transform of all.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spectrakan.errors import ConfigError
from spectrakan.nn.axis import Axis, axis_transform, signed_transform
from spectrakan.nn.execution import Field, force_fp32
from spectrakan.nn.products import analyse, synthesise
from spectrakan.numerics.fourier import Basis, is_complex


class FourierLayer(nn.Module):
    """K v, or K v + P v + b with a `pointwise` map, the layer of the Fourier neural operator.

    The last axis is transformed together with P, which saves a field.
    """

    def __init__(self, width: int, num_modes: int, bases: Sequence[Basis], *, pointwise: bool = True) -> None:
        super().__init__()
        if not all(map(is_complex, bases)):
            raise ConfigError(
                f"joint mixing needs bases with complex coefficients, got {', '.join(bases)}; mix axially"
            )
        self.width, self.num_modes, self.bases = width, num_modes, tuple(bases)
        modes = [2 * num_modes] * (len(self.bases) - 1) + [num_modes]
        # A mode's output has the variance of its input, whatever the width.
        self.weight = nn.Parameter(torch.randn(*modes, width, width, 2) / (2 * width) ** 0.5)
        self.pointwise = nn.Linear(width, width) if pointwise else None

    @force_fp32
    def forward(self, field: Field, axes: Sequence[Axis]) -> Field:
        """`(channel, batch, *space)` to the same shape."""
        channels, batch, *others = field.shape[:-1]
        last = axis_transform(axes[-1], self.bases[-1], self.num_modes, field)
        start, rows = analyse(field.flatten(1, -2), self.pointwise, last.analysis)
        rows = axes[-1].summed(rows)
        pairs = rows.view(last.modes, 2, channels, batch, *others).transpose(0, 1)
        mixed = self._between(pairs, axes[:-1]).transpose(0, 1)
        rows = mixed.reshape(2 * last.modes, channels, -1)
        return synthesise(start, [rows], [last.synthesis]).view(field.shape)

    def _between(self, value: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The other axes there and back, with W between: `(2, modes, channel, batch, *others)` to the same."""
        others = zip(axes, self.bases, strict=False)
        transforms = [signed_transform(axis, basis, self.num_modes, value) for axis, basis in others]
        for axis, (into, _) in reversed(list(zip(axes, transforms, strict=True))):
            value = axis.summed(_on_pairs(into, value.movedim(-1, 1)))
        value = self._mix(value)
        for _, out in transforms:
            value = _on_pairs(out, value).movedim(1, -1)
        return value

    def _mix(self, value: Tensor) -> Tensor:
        """W on `(2, *modes, channel, batch)`, one matrix product a mode."""
        modes, batch = value.shape[1:-2], value.shape[-1]
        weight: Tensor = self.weight
        for axis, count in enumerate(modes[:-1]):
            stored, low = weight.shape[axis], (count + 1) // 2
            if count < stored:  # of signed orders the highest are in the middle: half of the others from each end
                ends = [weight.narrow(axis, 0, low), weight.narrow(axis, stored - (count - low), count - low)]
                weight = torch.cat(ends, dim=axis)
        if torch.compiler.is_compiling() or modes[-1] != self.num_modes:  # slices have a price in the gradient
            weight = weight.narrow(len(modes) - 1, 0, modes[-1])
        # One row a sample and part against each mode's matrix as it is stored: only the coefficients are rearranged.
        rows = value.movedim((0, -1), (-3, -2)).reshape(math.prod(modes), 2 * batch, self.width)
        product = torch.bmm(rows, weight.reshape(rows.shape[0], self.width, -1))
        # (part of the input, sample, channel, part of the weight): Re = rr - ii, Im = ri + ir.
        real, imaginary = product.view(*modes, 2, batch, self.width, 2).unbind(-4)
        mixed = torch.stack([real[..., 0] - imaginary[..., 1], real[..., 1] + imaginary[..., 0]])
        return mixed.transpose(-1, -2)


def _on_pairs(matrix: Tensor, value: Tensor) -> Tensor:
    """A matrix on (real parts, imaginary parts) along axis 1 of `(2, n, ..)`."""
    pairs: Tensor = torch.tensordot(matrix, value.flatten(0, 1), dims=([1], [0])).unflatten(0, (2, -1))
    return pairs
