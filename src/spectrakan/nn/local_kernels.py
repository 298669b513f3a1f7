"""Layers that act near a point: a learned derivative and a learned local integral.

The differential layer is a learned stencil that becomes a first derivative as the cells get small.

    y_o(x) = length sum_i sum_a (1 / h_a) sum_j s_a[w_oi](j) u_i(x + j h),     s_a the stencils below,

so y -> length sum_a c_oia du_i/dx_a with c_oia = sum_j j_a w_oi(j), with an error of order h.
The local integral layer is a discrete-continuous convolution with a kernel on a ball of fixed size.

    y_o(x) = sum_i int_{|x - y| < R} k_oi(x - y) u_i(y) dy,     k_oi(z) = sum_f w_fio e_f(z),

with the functions e_f below, known at every z: the kernel is a function in shares of the
domain, sampled on the given cells, so the stencil grows as the grid is refined and y converges (order h²).
Ocampo et al., Scalable and equivariant spherical CNNs by discrete-continuous convolutions, ICLR 2023.
Shapes: fields `(channel, batch, *space)`; weights `(out, in, *offsets)` and `(functions, in, out)`.
The integral is taken by a fast Fourier transform, on a larger box along axes that are not periodic: its work does not
grow with the (R/h)^d cells of a stencil.

Difference stencil. Of weights w_j on the offsets j in {-r .. r}^d, the values u(x + j h) - u(x) are sums of steps
along one axis after the other, and each step is divided by its own cell width h_a:
    sum_j w_j sum_a [ u(x + (j_1..j_a, 0..) h) - u(x + (j_1..j_{a-1}, 0..) h) ] / h_a
        ->  sum_a (sum_j j_a w_j) du/dx_a,
so any weights give a first derivative as h -> 0, also where the axes are refined unequally.

Local functions. On the ball |z| < R, with nodes r_p = p R / P, hats in the radius times squared cosines to the axes:
    e_0 = hat_0(|z|),     e_{p, a, +-} = hat_p(|z|) max(0, +-z_a / |z|)²,    p = 1 .. P - 1.
The squared cosines sum to one, so all functions together are one up to r_{P-1}, then fall to zero at R.
Each is scaled to integral one.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from scipy.fft import next_fast_len
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, kept
from spectrakan.nn.execution import Field, force_fp32
from spectrakan.nn.spectral import multiply_modes


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
    def forward(self, field: Field, axes: Sequence[Axis]) -> Field:
        """`(channel, batch, *space)` to the same shape."""
        wider, convolve = field, {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(axes)]
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


class LocalIntegral(nn.Module):
    """See the file's equation; beyond the ends of an axis that is not periodic the field is its own mirror image.

    With zeros there the integral has a kink where the ball meets the end, and the derivatives of the next layers
    grow without bound as cells get small. On unequal cells, lengths are counted in cells of the mean width.
    """

    def __init__(self, width: int, space_dims: int, radius: float, rings: int) -> None:
        super().__init__()
        self.radius, self.rings = radius, rings
        count = 1 + 2 * space_dims * (rings - 1)
        self.weight = nn.Parameter(torch.randn(count, width, width) / math.sqrt(count * width))

    @force_fp32
    def forward(self, field: Field, axes: Sequence[Axis]) -> Field:
        """`(channel, batch, *space)` to the same shape, by a fast Fourier transform."""
        cells = tuple(axis.cells for axis in axes)
        reaches = [0 if axis.periodic else math.ceil(self.radius * axis.cells) for axis in axes]
        sizes = tuple(
            next_fast_len(count + 2 * reach, real=True) if reach else count
            for count, reach in zip(cells, reaches, strict=True)
        )
        for dim, reach in enumerate(reaches, start=2):
            field = _mirrored(field, dim, reach) if reach else field
        spectra = _kernel_spectra(cells, sizes, self.radius, self.rings, field)
        spectrum = torch.fft.rfftn(field, s=sizes, dim=tuple(range(2, field.ndim)))
        flat = self.weight.flatten(1)
        matrices = torch.complex(spectra.real.T @ flat, spectra.imag.T @ flat).unflatten(1, self.weight.shape[1:])
        mixed = multiply_modes(matrices, spectrum.flatten(2)).view(spectrum.shape)
        result = torch.fft.irfftn(mixed, s=sizes, dim=tuple(range(2, field.ndim)))
        # Wrapping around the larger box affects only cells past the ends.
        for dim, (count, reach) in enumerate(zip(cells, reaches, strict=True), start=2):
            result = result.narrow(dim, reach, count)
        found: Tensor = result.contiguous()
        return found


def _mirrored(field: Tensor, dim: int, reach: int) -> Tensor:
    """`reach` more cells at either end, mirrored at the ends."""
    cells = field.shape[dim]
    index = torch.arange(-reach, cells + reach, device=field.device).remainder(2 * cells)
    return field.index_select(dim, torch.minimum(index, 2 * cells - 1 - index))


@kept
def _kernel_spectra(
    cells: tuple[int, ...], sizes: tuple[int, ...], radius: float, rings: int, like: Tensor
) -> Tensor:
    """Transforms of the functions e_f on periodic boxes of `sizes` cells, `(functions, modes)`."""
    values = sampled_functions([1 / count for count in cells], radius, rings)
    for axis, size in enumerate(sizes, start=1):
        reach = values.shape[axis] // 2
        # Offsets wrap around the box; where the ball is larger than the box they meet and are summed.
        offsets = torch.arange(-reach, reach + 1).remainder(size)
        shape = [*values.shape]
        shape[axis] = size
        values = torch.zeros(shape, dtype=values.dtype).index_add(axis, offsets, values)
    spectra: Tensor = torch.fft.rfftn(values, dim=tuple(range(1, values.ndim))).flatten(1)
    return spectra.to(like.dtype.to_complex()).to(like.device)


def difference_stencils(
    weights: Float[Tensor, "out channel *offsets"],
) -> list[Float[Tensor, "out channel *offsets"]]:
    """One stencil an axis, to be divided by that axis' cell width and summed; each sums to zero."""
    stencils = []
    rest = weights
    for axis in reversed(range(weights.ndim - 2)):
        # The sum along one axis, placed at its middle.
        size = rest.shape[axis + 2]
        middle = (torch.arange(size, device=rest.device) == size // 2).to(rest.dtype)
        collapsed = rest.sum(axis + 2, keepdim=True) * middle.view(-1, *[1] * (rest.ndim - axis - 3))
        stencils.append(rest - collapsed)
        rest = collapsed
    return stencils[::-1]


def local_functions(offsets: Sequence[Tensor], radius: float, rings: int) -> Tensor:
    """The functions at all combinations of `offsets` `(n_a,)`, before scaling: `(functions, *offsets)`."""
    mesh = torch.stack(torch.meshgrid(*offsets, indexing="ij"))
    distance = torch.linalg.vector_norm(mesh, dim=0)
    step = radius / rings
    functions = [(1 - distance / step).clamp_min(0)]
    cosines = mesh / distance.clamp_min(torch.finfo(distance.dtype).tiny)
    for ring in range(1, rings):
        hat = (1 - (distance - ring * step).abs() / step).clamp_min(0)
        functions += [hat * (sign * cosine).clamp_min(0).square() for cosine in cosines for sign in (1, -1)]
    return torch.stack(functions)


def sampled_functions(widths: Sequence[float], radius: float, rings: int) -> Tensor:
    """The functions on offsets of whole cells, scaled to sum to one: `(functions, *offsets)`, float64.

    A function that contains no offset, because the cells are too wide for it, is left zero.
    """
    reaches = [math.ceil(radius / width) - 1 for width in widths]  # cells whose centres lie within the radius
    offsets = [
        torch.arange(-reach, reach + 1, dtype=torch.float64) * width
        for reach, width in zip(reaches, widths, strict=True)
    ]
    values = local_functions(offsets, radius, rings)
    totals = values.flatten(1).sum(1)
    scale = torch.where(totals > 0, 1 / totals.clamp_min(torch.finfo(totals.dtype).tiny), 0.0)
    return values * scale.view(-1, *[1] * len(widths))
