"""Learned vectors on a lattice, read at any place by Gaussian weights.

    e(x) = LN(W sum_c w_c(x) z_c + b),     w_c(x) = softmax_c(-sharpness |x - c|^2)
On a lattice |x - c|^2 is a sum over axes, so the weights are products: one small matrix an axis instead of one
weight for each pair of place and lattice point, and no place is so far from all points that it divides by zero.
The latents start as waves of random low frequencies, unit variance: neighbours begin alike, and grow apart as needed.
Shapes: axes of a grid of N cells -> `(N, width)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, uniform_axis
from spectrakan.nn.positions import cell_coordinates
from spectrakan.numerics.radial import gaussian_weights
from spectrakan.numerics.sampling import along_axis

START_CYCLES = 0.7
"""Deviation of the frequencies at which latents start, in cycles over the domain."""


class LatentGrid(nn.Module):
    """See the file's equation."""

    def __init__(self, counts: Sequence[int], latent_width: int, width: int, sharpness: float) -> None:
        super().__init__()
        self.sharpness = sharpness
        self.latents = nn.Parameter(smooth_latents(counts, latent_width))
        self.embed = nn.Linear(latent_width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, axes: Sequence[Axis]) -> Tensor:
        """One vector for each cell of the grid with these axes, `(cells, width)`."""
        embedded: Tensor = self.norm(self.embed(self.interpolate(axes).flatten(0, -2)))
        return embedded

    def interpolate(self, axes: Sequence[Axis]) -> Tensor:
        """The latents at the cell centres, `(*space, latent_width)`."""
        values: Tensor = self.latents
        for place, axis in enumerate(axes):
            lattice = uniform_axis(self.latents.shape[place], periodic=False)
            weights = gaussian_weights(axis.centres, lattice.centres, self.sharpness)
            values = along_axis(weights.to(values), values, place)
        return values


def smooth_latents(counts: Sequence[int], latent_width: int) -> Tensor:
    """sqrt(2) cos(2 pi (f . c + phase)) at the lattice points c, f and phase drawn for each latent channel."""
    like = torch.zeros(())
    lattice = cell_coordinates([uniform_axis(count, False) for count in counts], like)
    angle = lattice @ (START_CYCLES * torch.randn(len(counts), latent_width)) + torch.rand(latent_width)
    return (2**0.5 * torch.cos(2 * math.pi * angle)).view(*counts, latent_width)
