"""Random periodic states on (0, 1), and their Fourier coefficients; fields `(batch, cells, 1)`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spectrakan.fields import Grid
from spectrakan.numerics.random_field import uniform_draws

HIGHEST = 6
"""Highest wave number of a random state."""


def random_waves(num_samples: int, resolution: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """u(x) = m + sum_{k=1}^{6} (a_k / k) sin(2 pi k x + phi_k), a_k ~ U(0, 1), m ~ U(-1/2, 1/2): `(batch, cells, 1)`.

    The draws do not depend on the cells: one seed gives the same functions at every resolution.
    """
    amplitude = uniform_draws((num_samples, HIGHEST), 0.0, 1.0, generator)
    phase = uniform_draws((num_samples, HIGHEST), 0.0, 2 * math.pi, generator)
    mean = uniform_draws((num_samples, 1), -0.5, 0.5, generator)
    order = torch.arange(1, HIGHEST + 1, dtype=torch.float64)
    (centres,) = Grid.uniform(resolution).coordinates
    angle = 2 * math.pi * order[:, None] * centres + phase[..., None]
    return (mean + ((amplitude / order)[..., None] * angle.sin()).sum(1))[..., None]


def wave_numbers(cells: int) -> Tensor:
    """Angular wave numbers 2 pi k of the coefficients that `rfft` gives, k = 0 .. cells / 2."""
    return 2 * math.pi * torch.arange(cells // 2 + 1, dtype=torch.float64)
