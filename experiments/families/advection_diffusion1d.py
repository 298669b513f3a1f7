"""Advection and diffusion with constant speed and diffusivity: a family that a turned phase solves exactly.

u_t + c u_x = nu u_xx,     u_k(t) = u_k(0) exp(-(2 pi i k c + nu (2 pi k)^2) t)     on (0, 1), periodic
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from experiments.families.waves import random_waves, wave_numbers
from spectrakan.config import settings
from spectrakan.fields import FieldSpec
from spectrakan.pde.equation import Equation, per_sample


@settings
class AdvectionDiffusionParameters:
    """Speed and diffusivity; tensors `(batch,)` where samples differ."""

    speed: float = 1.0
    """Speed c."""
    log_diffusivity: float = -2.5
    """log10 of the diffusivity nu."""


def sample(
    num_samples: int,
    resolution: tuple[int, ...],
    parameters: AdvectionDiffusionParameters,
    generator: torch.Generator,
) -> Tensor:
    """Random waves `(num_samples, cells, 1)`, the same for all parameters."""
    del parameters
    return random_waves(num_samples, resolution, generator)


def solve(initial: Tensor, times: Sequence[float], parameters: AdvectionDiffusionParameters) -> Tensor:
    """The exact states at the given times: `(batch, cells, 1)` -> `(batch, len(times), cells, 1)`."""
    cells = initial.shape[1]
    order = wave_numbers(cells)
    modes = torch.fft.rfft(initial[..., 0].double())
    speed = per_sample(parameters.speed, modes.real)
    diffusivity = 10 ** per_sample(parameters.log_diffusivity, modes.real)
    rate = torch.complex(-diffusivity * order**2, -speed * order)
    frames = [torch.fft.irfft(modes * torch.exp(rate * time), n=cells) for time in times]
    return torch.stack(frames, 1)[..., None]


EQUATION = Equation(
    name="advection_diffusion1d",
    summary="Advection and diffusion in 1D, speed and diffusivity varied",
    fields=(FieldSpec(name="u"),),
    bounds=((0.0, 1.0),),
    boundary=("periodic",),
    resolution=(128,),
    times=tuple(round(0.1 * index, 12) for index in range(11)),
    parameters=AdvectionDiffusionParameters,
    sample=sample,
    solve=solve,
    batched_parameters=("speed", "log_diffusivity"),
)
