"""Errors by wavenumber: Fourier modes gathered in shells, shells in bands.

A mode k (whole numbers of waves across each axis of the box) belongs to shell floor(|k|). In 1D the shells
are 0 .. n//2; in 2D and 3D those that the grid resolves in all directions, 0 .. min(n)//2 - 1.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from spectrakan.metrics.shapes import Fields, as_float64, check_fields

BANDS = {"frmse_low": slice(0, 4), "frmse_mid": slice(4, 12), "frmse_high": slice(12, None)}
"""PDEBench's bands, by shell: low 0..3, mid 4..11, high 12 and above."""


@dataclass(frozen=True, eq=False)
class Shells:
    """Which shell each stored mode of a real transform belongs to, and how many modes it stands for."""

    modes: Tensor
    """`(kept,)` indices of the modes in use, in the flattened real transform."""
    shell: Tensor
    """`(kept,)` shell of each."""
    multiplicity: Tensor
    """`(kept,)` 2 for a mode whose mirror image -k is not stored, else 1."""
    count: int
    """Number of shells."""


@lru_cache(maxsize=16)
def shells_of(space: tuple[int, ...], signed: bool = True, complete: bool = True) -> Shells:
    """Lay out the shells of a grid of `space` cells.

    `signed`: all wavenumbers, else only those that are non-negative along every axis (PDEBench's quadrant).
    `complete`: only shells resolved in all directions, else also the corners of the wavenumber box.
    """
    axes = [np.rint(np.fft.fftfreq(size) * size) for size in space]
    axes[-1] = np.arange(space[-1] // 2 + 1, dtype=np.float64)
    waves = np.meshgrid(*axes, indexing="ij")
    shell = np.floor(np.sqrt(sum(wave**2 for wave in waves))).astype(np.int64)
    last = space[-1] // 2 if len(space) == 1 else min(space) // 2 - 1
    count = last + 1 if complete else int(shell.max()) + 1
    kept = shell < count
    multiplicity = np.ones(shell.shape)
    if signed:
        # A real field has F(-k) = conj F(k): only half of the last axis is stored, and 0 and n/2 are
        # their own mirror images along it.
        multiplicity = np.where((waves[-1] == 0) | (2 * waves[-1] == space[-1]), 1.0, 2.0)
    else:
        kept &= np.all([wave >= 0 for wave in waves], axis=0)
    indices = np.flatnonzero(kept)
    return Shells(
        modes=torch.from_numpy(indices),
        shell=torch.from_numpy(shell.ravel()[indices]),
        multiplicity=torch.from_numpy(multiplicity.ravel()[indices]),
        count=count,
    )


def shell_energies(values: Tensor, shells: Shells) -> Tensor:
    """S_s = Σ_{k in shell s} |F_k|², F the transform divided by the number of cells.

    `(B, T, *space, C)` to `(B, T, shells, C)`. By Parseval the sum over all modes is the mean square.
    """
    space = tuple(range(2, values.ndim - 1))
    # Fields first and cells last: the transform then runs along contiguous memory.
    transform = torch.fft.rfftn(values.movedim(-1, 2).contiguous(), dim=[a + 1 for a in space], norm="forward")
    kept = transform.flatten(3).index_select(-1, shells.modes.to(values.device))
    power = (kept.real.square() + kept.imag.square()) * shells.multiplicity.to(values.device)
    energies: Tensor = power.new_zeros((*power.shape[:-1], shells.count))
    energies.index_add_(-1, shells.shell.to(values.device), power)
    return energies.movedim(2, -1)


def band_means(amplitudes: Tensor) -> dict[str, Tensor]:
    """Mean over the shells of each band, `(..., shells, C)` to `(..., C)`; NaN for a band without shells."""
    return {name: amplitudes[..., part, :].mean(-2) for name, part in BANDS.items()}


def energy_spectrum(values: Fields, *, complete: bool = True) -> Tensor:
    """Isotropic power spectrum of each frame and field: `(B, T, *space, C)` to `(B, T, shells, C)`.

        E_s = Σ_{s <= |k| < s + 1} |F_k|²

    With `complete=False` the corners of the wavenumber box are kept, and Σ_s E_s is the mean square of the
    field. Take half the sum over velocity components for kinetic energy. Cells count as equally spaced.

    >>> x = torch.arange(32, dtype=torch.float64) / 32
    >>> wave = torch.cos(2 * torch.pi * 5 * x).reshape(1, 1, 32, 1)
    >>> spectrum = energy_spectrum(wave)[0, 0, :, 0]
    >>> int(spectrum.argmax()), round(float(spectrum.max()), 12)
    (5, 0.5)
    """
    check_fields("values", values.shape)
    space = tuple(int(size) for size in values.shape[2:-1])
    return shell_energies(as_float64(values), shells_of(space, complete=complete))
