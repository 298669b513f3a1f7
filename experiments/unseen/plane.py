"""Fourier modes of fields on (0, 1)^2 as `rfft2` orders them: `(nx, ny / 2 + 1)`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def wave_vectors(size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Angular wave numbers 2 pi k along x `(nx, 1)` and along y `(1, ny / 2 + 1)`."""
    along_x = 2 * math.pi * torch.fft.fftfreq(size[0], d=1 / size[0], dtype=torch.float64)
    along_y = 2 * math.pi * torch.arange(size[1] // 2 + 1, dtype=torch.float64)
    return along_x[:, None], along_y[None, :]


def squared_waves(size: Sequence[int]) -> Tensor:
    """Squares of the angular wave numbers: minus the symbol of the Laplacian."""
    along_x, along_y = wave_vectors(size)
    return along_x**2 + along_y**2


def dealiased(size: Sequence[int]) -> Tensor:
    """1 for modes whose products do not fold back onto kept ones (the 2/3 rule), else 0."""
    along_x, along_y = (2 * math.pi * (cells // 3) for cells in size)
    x, y = wave_vectors(size)
    return ((x.abs() <= along_x + 1e-9) & (y <= along_y + 1e-9)).double()
