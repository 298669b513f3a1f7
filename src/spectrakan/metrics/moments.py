"""What one sample, one frame and one field contribute to the scores, before any average over them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from spectrakan.metrics.boundary import boundary_mean_square
from spectrakan.metrics.conserved import spatial_mean
from spectrakan.metrics.pointwise import largest, mean_square
from spectrakan.metrics.spectral import shell_energies, shells_of


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over space of the error e = P - T and of the truth, `(batch, time, channel)` each, on the CPU."""

    error: Tensor
    """Mean of e²."""
    truth: Tensor
    """Mean of T²."""
    largest: Tensor
    """Largest |e|."""
    bias: Tensor
    """Mean of e."""
    boundary: Tensor
    """Mean of e² over the boundary cells."""
    shells: Tensor
    """`(batch, time, shell, channel)` energy of e in each shell of wavenumbers."""


def moments_of(pred: Tensor, target: Tensor, volumes: Tensor, signed: bool) -> Moments:
    """Reduce a block of float64 fields `(B, T, *space, C)` over space; `signed` as in `shells_of`."""
    volumes = volumes.to(pred.device)
    error = pred - target
    return Moments(
        error=mean_square(error, volumes).cpu(),
        truth=mean_square(target, volumes).cpu(),
        largest=largest(error).cpu(),
        bias=spatial_mean(error, volumes).cpu(),
        boundary=boundary_mean_square(error, volumes).cpu(),
        shells=shell_energies(error, shells_of(tuple(volumes.shape), signed)).cpu(),
    )
