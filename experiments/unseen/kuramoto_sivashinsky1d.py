"""The Kuramoto-Sivashinsky equation: a flame front whose cells split and merge without end.

    u_t + u u_x + u_xx + u_xxxx = 0     on (0, L), periodic

Dealiased Fourier products and exponential time differencing of order 4. Long waves grow and short ones decay, so that
every start ends in chaos: frames begin after 100 units of time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from experiments.families.waves import random_waves
from experiments.unseen.exponential import modes_at
from spectrakan.config import settings
from spectrakan.fields import FieldSpec
from spectrakan.pde.equation import Equation, Positive

LENGTH = 64.0
_SAMPLES_AT_ONCE = 64


@settings
class KuramotoSivashinskyParameters:
    """The time step of the solver."""

    longest_step: Positive = 0.05
    """Longest step of time."""


def sample(
    num_samples: int,
    resolution: tuple[int, ...],
    parameters: KuramotoSivashinskyParameters,
    generator: torch.Generator,
) -> Tensor:
    """Random waves without a mean, `(num_samples, cells, 1)`, long before the first frame."""
    del parameters
    waves = random_waves(num_samples, resolution, generator)
    return waves - waves.mean(1, keepdim=True)


def solve(initial: Tensor, times: Sequence[float], parameters: KuramotoSivashinskyParameters) -> Tensor:
    """Solve a batch: `(batch, cells, 1)` -> `(batch, len(times), cells, 1)`.

    >>> constant = torch.full((1, 32, 1), 0.3)
    >>> found = solve(constant, [0.0, 1.0], KuramotoSivashinskyParameters())
    >>> bool((found[:, 1] - 0.3).abs().max() < 1e-7)
    True
    """
    return torch.cat([_solve_part(part, times, parameters) for part in initial.split(_SAMPLES_AT_ONCE)])


def _solve_part(initial: Tensor, times: Sequence[float], parameters: KuramotoSivashinskyParameters) -> Tensor:
    cells = initial.shape[1]
    order = torch.arange(cells // 2 + 1, dtype=torch.float64)
    wave = 2 * math.pi / LENGTH * order
    kept = (order <= cells // 3).double()
    flux = torch.complex(torch.zeros_like(wave), -wave * kept / 2)

    def rate(modes: Tensor) -> Tensor:
        product: Tensor = flux * torch.fft.rfft(torch.fft.irfft(modes, n=cells).square())
        return product

    modes = torch.fft.rfft(initial[..., 0].double())
    found = modes_at(modes, times, parameters.longest_step, wave**2 - wave**4, rate)
    return torch.stack([torch.fft.irfft(each, n=cells) for each in found], 1)[..., None]


EQUATION = Equation(
    name="kuramoto_sivashinsky1d",
    summary="Kuramoto-Sivashinsky equation in 1D, chaotic",
    fields=(FieldSpec(name="u"),),
    bounds=((0.0, LENGTH),),
    boundary=("periodic",),
    resolution=(128,),
    times=tuple(100.0 + index for index in range(21)),
    history=5,
    parameters=KuramotoSivashinskyParameters,
    sample=sample,
    solve=solve,
)
