"""The differential layer: a learned stencil that becomes a first derivative as the cells get small.

    y_o(x) = length sum_i sum_a (1 / h_a) sum_j s_a[w_oi](j) u_i(x + j h),     s_a: `numerics.local_kernels`

so y -> length sum_a c_oia du_i/dx_a with c_oia = sum_j j_a w_oi(j), with an error of order h.
Shapes: fields `(channel, batch, *space)`, weight `(out, in, *offsets)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis
from spectrakan.nn.execution import force_fp32
from spectrakan.numerics.local_kernels import difference_stencils


class DifferentialKernel(nn.Module):
    """See the file's equation; a field is continued periodically or, past other ends, by a parabola.

    `length`, in shares of the domain, makes the output of the size of fields that vary over it. On unequal cells
    h is half the distance between the neighbours, which is consistent where cell widths change gradually.
    """

    def __init__(self, width: int, space_dims: int, length: float) -> None:
        super().__init__()
        self.length = length
        size = math.sqrt(1 / (width * 3**space_dims))
        self.weight = nn.Parameter(size * torch.randn(width, width, *[3] * space_dims))

    @force_fp32
    def forward(
        self, field: Float[Tensor, "channel batch *space"], axes: Sequence[Axis]
    ) -> Float[Tensor, "channel batch *space"]:
        """`(channel, batch, *space)` to the same shape."""
        wider = field
        for dim, axis in enumerate(axes, start=2):
            wider = _with_neighbours(wider, dim, axis.periodic)
        wider = wider.transpose(0, 1)
        stencils = difference_stencils(self.weight)
        if all(axis.uniform for axis in axes):
            parts = [stencil * (self.length * axis.cells) for stencil, axis in zip(stencils, axes, strict=True)]
            return convolve(wider, torch.stack(parts).sum(0)).transpose(0, 1).contiguous()
        total = torch.zeros_like(field)
        for dim, (stencil, axis) in enumerate(zip(stencils, axes, strict=True)):
            view = [1] * len(axes)
            view[dim] = axis.cells
            scale = (self.length / _spacing(axis)).to(field.dtype).to(field.device).view(view)
            total = total + scale * convolve(wider, stencil).transpose(0, 1)
        return total


def convolve(field: Tensor, kernel: Tensor) -> Tensor:
    """Sum over offsets and channels of `(batch, channel, *space)`, without padding."""
    product = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[field.ndim - 2]
    result: Tensor = product(field, kernel)
    return result


def _with_neighbours(field: Tensor, dim: int, periodic: bool) -> Tensor:
    """One more cell at either end of an axis."""
    cells = field.shape[dim]
    first, last = field.narrow(dim, 0, 1), field.narrow(dim, cells - 1, 1)
    if periodic:
        return torch.cat([last, field, first], dim=dim)
    # A straight line would leave an error of order h in the end cells alone, and the next derivatives divide the
    # difference between neighbours by h again.
    before = 3 * (first - field.narrow(dim, 1, 1)) + field.narrow(dim, 2, 1)
    after = 3 * (last - field.narrow(dim, cells - 2, 1)) + field.narrow(dim, cells - 3, 1)
    return torch.cat([before, field, after], dim=dim)


def _spacing(axis: Axis) -> Tensor:
    """Half the distance between the neighbours of each cell, `(n,)`."""
    gaps = axis.centres.diff()
    wrap = (axis.widths[:1] + axis.widths[-1:]) / 2
    before = torch.cat([wrap if axis.periodic else gaps[:1], gaps])
    after = torch.cat([gaps, wrap if axis.periodic else gaps[-1:]])
    return (before + after) / 2
