"""The local integral layer: a discrete-continuous convolution with a kernel on a ball of fixed size.

    y_o(x) = sum_i int_{|x - y| < R} k_oi(x - y) u_i(y) dy,     k_oi(z) = sum_f w_foi e_f(z),

with the functions e_f of `numerics.local_kernels`, known at every z: the kernel is a function in shares of the
domain, sampled on whatever cells there are, so the stencil grows as the grid is refined and y converges (order h²).
Ocampo et al., Scalable and equivariant spherical CNNs by discrete-continuous convolutions, ICLR 2023.
Shapes: fields `(channel, batch, *space)`, weight `(functions, out, in)`.
The sum over cells is done by a fast Fourier transform, zero-padded along axes that are not periodic: a stencil
would have (R/h)^d entries, each a matrix product.
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
from spectrakan.numerics.local_kernels import count_local_functions, sampled_functions


class LocalIntegral(nn.Module):
    """See the file's equation; beyond the ends of an axis that is not periodic there is nothing to integrate.

    On unequal cells, lengths are counted in cells of the mean width.
    """

    def __init__(self, width: int, space_dims: int, radius: float, rings: int) -> None:
        super().__init__()
        self.radius, self.rings = radius, rings
        count = count_local_functions(rings, space_dims)
        self.weight = nn.Parameter(torch.randn(count, width, width) / math.sqrt(count * width))

    def forward(
        self, field: Float[Tensor, "channel batch *space"], axes: Sequence[Axis]
    ) -> Float[Tensor, "channel batch *space"]:
        """`(channel, batch, *space)` to the same shape."""
        cells, periodic = tuple(axis.cells for axis in axes), tuple(axis.periodic for axis in axes)
        sizes = tuple(
            count if wraps else next_fast_len(count + math.ceil(self.radius * count), real=True)
            for count, wraps in zip(cells, periodic, strict=True)
        )
        spectra = _kernel_spectra(cells, sizes, self.radius, self.rings, field.dtype, field.device)
        spectrum = torch.fft.rfftn(field, s=sizes, dim=tuple(range(2, field.ndim)))
        columns = spectrum.movedim((0, 1), (-2, -1)).flatten(0, -3)
        mixed = torch.bmm(self._matrices(spectra), columns)
        mixed = mixed.view(*spectrum.shape[2:], *spectrum.shape[:2]).movedim((-2, -1), (0, 1))
        answer = torch.fft.irfftn(mixed, s=sizes, dim=tuple(range(2, field.ndim)))
        for place, count in enumerate(cells, start=2):
            answer = answer.narrow(place, 0, count)
        result: Tensor = answer.contiguous()
        return result

    def _matrices(self, spectra: Complex[Tensor, "functions modes"]) -> Complex[Tensor, "modes out channel"]:
        """Spectrum of the kernel k, one matrix a mode."""
        flat = self.weight.flatten(1)
        product = torch.complex(spectra.real.T @ flat, spectra.imag.T @ flat)
        matrices: Tensor = product.unflatten(1, self.weight.shape[1:])
        return matrices


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
