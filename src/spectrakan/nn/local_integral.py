"""The local integral layer: a discrete-continuous convolution with a kernel on a ball of fixed size.

    y_o(x) = sum_i int_{|x - y| < R} k_oi(x - y) u_i(y) dy,     k_oi(z) = sum_f w_fio e_f(z),

with the functions e_f of `numerics.local_kernels`, known at every z: the kernel is a function in shares of the
domain, sampled on the given cells, so the stencil grows as the grid is refined and y converges (order h²).
Ocampo et al., Scalable and equivariant spherical CNNs by discrete-continuous convolutions, ICLR 2023.
Shapes: fields `(channel, batch, *space)`, weight `(functions, in, out)`.
A small stencil is summed as it is; a larger one, of (R/h)^d matrix products, by a fast Fourier transform, on a larger
box along axes that are not periodic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Complex, Float
from scipy.fft import next_fast_len
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, kept
from spectrakan.nn.differential import convolve
from spectrakan.nn.execution import force_fp32
from spectrakan.nn.spectral import multiply_modes
from spectrakan.numerics.local_kernels import count_local_functions, sampled_functions, stencil_shape

DIRECT_LIMIT = {1: 9, 2: 49, 3: 27}
"""Cells of a stencil, by the number of axes, above which the transform is quicker on a CPU."""


class LocalIntegral(nn.Module):
    """See the file's equation; beyond the ends of an axis that is not periodic the field is its own mirror image.

    With zeros there the integral has a kink where the ball meets the end, and the derivatives of the next layers
    grow without bound as cells get small. On unequal cells, lengths are counted in cells of the mean width.
    """

    def __init__(self, width: int, space_dims: int, radius: float, rings: int) -> None:
        super().__init__()
        self.radius, self.rings = radius, rings
        count = count_local_functions(rings, space_dims)
        self.weight = nn.Parameter(torch.randn(count, width, width) / math.sqrt(count * width))

    @force_fp32
    def forward(
        self, field: Float[Tensor, "channel batch *space"], axes: Sequence[Axis]
    ) -> Float[Tensor, "channel batch *space"]:
        """`(channel, batch, *space)` to the same shape."""
        widths = [1 / axis.cells for axis in axes]
        if math.prod(stencil_shape(widths, self.radius)) <= DIRECT_LIMIT[len(axes)]:
            return self.by_stencil(field, axes)
        return self.by_transform(field, axes)

    def by_stencil(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The sum over cells as it is written."""
        functions = _kernel_values(tuple(axis.cells for axis in axes), self.radius, self.rings, field)
        kernel = torch.tensordot(self.weight, functions, dims=([0], [0])).transpose(0, 1)
        # A convolution layer takes u(x + z) where the integral has u(x - z).
        kernel = kernel.flip(tuple(range(2, kernel.ndim)))
        for dim, axis in enumerate(axes, start=2):
            field = _continued(field, dim, kernel.shape[dim] // 2, axis.periodic)
        return convolve(field.transpose(0, 1), kernel).transpose(0, 1).contiguous()

    def by_transform(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The same by a fast Fourier transform."""
        cells = tuple(axis.cells for axis in axes)
        reaches = [0 if axis.periodic else math.ceil(self.radius * axis.cells) for axis in axes]
        sizes = tuple(
            next_fast_len(count + 2 * reach, real=True) if reach else count
            for count, reach in zip(cells, reaches, strict=True)
        )
        for dim, reach in enumerate(reaches, start=2):
            field = _continued(field, dim, reach, False) if reach else field
        spectra = _kernel_spectra(cells, sizes, self.radius, self.rings, field)
        spectrum = torch.fft.rfftn(field, s=sizes, dim=tuple(range(2, field.ndim)))
        mixed = multiply_modes(self._matrices(spectra), spectrum.flatten(2)).view(spectrum.shape)
        result = torch.fft.irfftn(mixed, s=sizes, dim=tuple(range(2, field.ndim)))
        # Wrapping around the larger box affects only cells past the ends.
        for dim, (count, reach) in enumerate(zip(cells, reaches, strict=True), start=2):
            result = result.narrow(dim, reach, count)
        cropped: Tensor = result.contiguous()
        return cropped

    def _matrices(self, spectra: Complex[Tensor, "functions modes"]) -> Complex[Tensor, "modes channel out"]:
        """Spectrum of the kernel k, one matrix a mode."""
        flat = self.weight.flatten(1)
        product = torch.complex(spectra.real.T @ flat, spectra.imag.T @ flat)
        matrices: Tensor = product.unflatten(1, self.weight.shape[1:])
        return matrices


def _continued(field: Tensor, dim: int, reach: int, periodic: bool) -> Tensor:
    """`reach` more cells at either end: periodic, or mirrored at the ends."""
    cells = field.shape[dim]
    index = torch.arange(-reach, cells + reach, device=field.device)
    if periodic:
        return field.index_select(dim, index.remainder(cells))
    index = index.remainder(2 * cells)
    return field.index_select(dim, torch.minimum(index, 2 * cells - 1 - index))


@kept
def _kernel_values(cells: tuple[int, ...], radius: float, rings: int, like: Tensor) -> Tensor:
    """The functions e_f on whole cells, `(functions, *offsets)`."""
    return sampled_functions([1 / count for count in cells], radius, rings).to(like.dtype).to(like.device)


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
