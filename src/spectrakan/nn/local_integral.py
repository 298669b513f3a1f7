"""The local integral layer: a discrete-continuous convolution with a kernel on a ball of fixed size.

    y_o(x) = sum_i int_{|x - y| < R} k_oi(x - y) u_i(y) dy,     k_oi(z) = sum_f w_fio e_f(z),

with the functions e_f of `numerics.local_kernels`, known at every z: the kernel is a function in shares of the
domain, sampled on whatever cells there are, so the stencil grows as the grid is refined and y converges (order h²).
Ocampo et al., Scalable and equivariant spherical CNNs by discrete-continuous convolutions, ICLR 2023.
Shapes: fields `(channel, batch, *space)`, weight `(functions, in, out)`.
A small stencil is summed as it is; a larger one, of (R/h)^d matrix products, by a fast Fourier transform, on a larger
box along axes that are not periodic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from jaxtyping import Complex, Float
from scipy.fft import next_fast_len
from torch import Tensor, nn

from spectrakan.nn.axis import Axis
from spectrakan.nn.differential import convolve
from spectrakan.nn.mode_products import multiply_modes
from spectrakan.nn.precision import unmixed
from spectrakan.numerics.local_kernels import count_local_functions, sampled_functions, stencil_shape

DIRECT_LIMIT = {1: 9, 2: 49, 3: 27}
"""Cells of a stencil, by the number of axes, above which the transform is quicker on a CPU."""


class LocalIntegral(nn.Module):
    """See the file's equation; beyond the ends of an axis that is not periodic the field is its own mirror image.

    With nothing there the integral would bend where the ball meets the end, and the derivatives of the next layers
    would grow without bound there as cells get small.

    On unequal cells, lengths are counted in cells of the mean width.
    """

    def __init__(self, width: int, space_dims: int, radius: float, rings: int) -> None:
        super().__init__()
        self.radius, self.rings = radius, rings
        count = count_local_functions(rings, space_dims)
        self.weight = nn.Parameter(torch.randn(count, width, width) / math.sqrt(count * width))

    @unmixed
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
        functions = _kernel_values(
            tuple(axis.cells for axis in axes), self.radius, self.rings, field.dtype, field.device
        )
        kernel = torch.tensordot(self.weight, functions, dims=([0], [0])).transpose(0, 1)
        # A convolution layer takes u(x + z) where the integral has u(x - z).
        kernel = kernel.flip(tuple(range(2, kernel.ndim)))
        for place, axis in enumerate(axes, start=2):
            field = _continued(field, place, kernel.shape[place] // 2, axis.periodic)
        return convolve(field.transpose(0, 1), kernel).transpose(0, 1).contiguous()

    def by_transform(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The same by a fast Fourier transform."""
        cells = tuple(axis.cells for axis in axes)
        reaches = [0 if axis.periodic else math.ceil(self.radius * axis.cells) for axis in axes]
        sizes = tuple(
            next_fast_len(count + 2 * reach, real=True) if reach else count
            for count, reach in zip(cells, reaches, strict=True)
        )
        for place, reach in enumerate(reaches, start=2):
            field = _continued(field, place, reach, False) if reach else field
        spectra = _kernel_spectra(cells, sizes, self.radius, self.rings, field.dtype, field.device)
        spectrum = torch.fft.rfftn(field, s=sizes, dim=tuple(range(2, field.ndim)))
        mixed = multiply_modes(self._matrices(spectra), spectrum.flatten(2)).view(spectrum.shape)
        answer = torch.fft.irfftn(mixed, s=sizes, dim=tuple(range(2, field.ndim)))
        # What comes round the larger box stays within the cells past the ends.
        for place, (count, reach) in enumerate(zip(cells, reaches, strict=True), start=2):
            answer = answer.narrow(place, reach, count)
        result: Tensor = answer.contiguous()
        return result

    def _matrices(self, spectra: Complex[Tensor, "functions modes"]) -> Complex[Tensor, "modes channel out"]:
        """Spectrum of the kernel k, one matrix a mode."""
        flat = self.weight.flatten(1)
        product = torch.complex(spectra.real.T @ flat, spectra.imag.T @ flat)
        matrices: Tensor = product.unflatten(1, self.weight.shape[1:])
        return matrices


def _continued(field: Tensor, place: int, reach: int, periodic: bool) -> Tensor:
    """`reach` more cells at either end: round a periodic axis, mirrored at the ends of another."""
    cells = field.shape[place]
    index = torch.arange(-reach, cells + reach, device=field.device)
    if periodic:
        return field.index_select(place, index.remainder(cells))
    index = index.remainder(2 * cells)
    return field.index_select(place, torch.minimum(index, 2 * cells - 1 - index))


@lru_cache(maxsize=64)
def _kernel_values(
    cells: tuple[int, ...], radius: float, rings: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """The functions e_f on whole cells, `(functions, *offsets)`."""
    with torch.inference_mode(False):
        return sampled_functions([1 / count for count in cells], radius, rings).to(dtype).to(device)


@lru_cache(maxsize=64)
def _kernel_spectra(
    cells: tuple[int, ...],
    sizes: tuple[int, ...],
    radius: float,
    rings: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Transforms of the functions e_f on periodic boxes of `sizes` cells, `(functions, modes)`."""
    with torch.inference_mode(False):
        values = sampled_functions([1 / count for count in cells], radius, rings)
        for axis, size in enumerate(sizes, start=1):
            reach = values.shape[axis] // 2
            # Offsets go round the box; where the ball is larger than the box they meet and are summed.
            places = torch.arange(-reach, reach + 1).remainder(size)
            shape = [*values.shape]
            shape[axis] = size
            values = torch.zeros(shape, dtype=values.dtype).index_add(axis, places, values)
        spectra = torch.fft.rfftn(values, dim=tuple(range(1, values.ndim))).flatten(1)
        kept: Tensor = spectra.to(dtype.to_complex()).to(device)
        return kept
