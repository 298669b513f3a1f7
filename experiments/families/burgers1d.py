"""Burgers' equation with a factor on its speed: waves steepen into shocks whose pace and width differ by sample.

    u_t + c u u_x = nu u_xx     on (0, 1), periodic

Dealiased Fourier products, diffusion exact by an integrating factor, Runge-Kutta of order 4 in time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from experiments.families.waves import random_waves, wave_numbers
from spectrakan.config import Count, settings
from spectrakan.fields import FieldSpec
from spectrakan.pde.equation import Equation, part_of, per_sample

BATCHED = ("log_speed", "log_viscosity")
_SAMPLES_AT_ONCE = 64
"""Arrays of this many samples stay in cache."""


@settings
class BurgersParameters:
    """Speed factor and viscosity, tensors `(batch,)` where samples differ, and the solver's grid."""

    log_speed: float = 0.0
    """log2 of the speed factor c."""
    log_viscosity: float = -2.0
    """log10 of the viscosity nu."""
    min_cells: Count = 512
    """The solver interpolates to at least this many points and returns those of the given cells."""
    courant: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Points that the fastest wave may cross in a step."""


def sample(
    num_samples: int, resolution: tuple[int, ...], parameters: BurgersParameters, generator: torch.Generator
) -> Tensor:
    """Random waves `(num_samples, cells, 1)`, the same for all parameters."""
    del parameters
    return random_waves(num_samples, resolution, generator)


def solve(initial: Tensor, times: Sequence[float], parameters: BurgersParameters) -> Tensor:
    """States at increasing times: `(batch, cells, 1)` -> `(batch, len(times), cells, 1)`, float64.

    Samples are solved together; all of a part take the same steps, bounded by its fastest wave, because |u| does
    not grow.

    >>> frames = solve(torch.ones(2, 16, 1), [0.0, 0.3], BurgersParameters(min_cells=32))
    >>> frames.shape, bool((frames - 1).abs().max() < 1e-12)  # a constant stays
    (torch.Size([2, 2, 16, 1]), True)
    """
    starts = range(0, len(initial), _SAMPLES_AT_ONCE)
    parts = [slice(start, start + _SAMPLES_AT_ONCE) for start in starts]
    return torch.cat([_solve_part(initial[part], times, part_of(parameters, BATCHED, part)) for part in parts])


def _solve_part(initial: Tensor, times: Sequence[float], parameters: BurgersParameters) -> Tensor:
    cells = initial.shape[1]
    factor = -(-parameters.min_cells // cells)
    points = cells * factor
    start = initial[..., 0].double()
    modes = _padded(torch.fft.rfft(start), points // 2 + 1) * factor
    order = wave_numbers(points)
    speed = 2 ** per_sample(parameters.log_speed, start)
    decay = 10 ** per_sample(parameters.log_viscosity, start) * order**2
    kept = (torch.arange(points // 2 + 1) <= points // 3).double()
    flux = torch.complex(torch.zeros_like(order), -order * kept) * (speed / 2)
    fastest = float((speed * start.abs().amax(1, keepdim=True)).max())
    longest = parameters.courant / (points * max(fastest, 1e-12))
    frames, now = [], 0.0
    for time in times:
        count = max(1, math.ceil((time - now) / longest - 1e-9)) if time > now else 0
        if count:
            step = (time - now) / count
            half = torch.exp(-decay * step / 2)
            for _ in range(count):
                modes = _step(modes, step, half, flux, points)
        now = time
        frames.append(torch.fft.irfft(modes, n=points)[:, ::factor])
    return torch.stack(frames, 1)[..., None]


def _step(modes: Tensor, step: float, half: Tensor, flux: Tensor, points: int) -> Tensor:
    """One step of length `step`; `half` is the exact decay over half of it."""

    def rate(state: Tensor) -> Tensor:
        found: Tensor = flux * torch.fft.rfft(torch.fft.irfft(state, n=points).square())
        return found

    first = step * rate(modes)
    second = step * rate(half * (modes + first / 2))
    third = step * rate(half * modes + second / 2)
    fourth = step * rate(half * (half * modes + third))
    found: Tensor = half * (half * (modes + first / 6) + (second + third) / 3) + fourth / 6
    return found


def _padded(modes: Tensor, count: int) -> Tensor:
    """Coefficients with zeros up to `count` of them; the highest given one counts for both signs and is halved."""
    if modes.shape[-1] == count:
        return modes
    wider = modes.new_zeros(*modes.shape[:-1], count)
    wider[..., : modes.shape[-1]] = modes
    wider[..., modes.shape[-1] - 1] /= 2
    return wider


EQUATION = Equation(
    name="burgers1d",
    summary="Burgers' equation in 1D, speed factor and viscosity varied",
    fields=(FieldSpec(name="u"),),
    bounds=((0.0, 1.0),),
    boundary=("periodic",),
    resolution=(128,),
    times=tuple(round(0.025 * index, 12) for index in range(21)),
    parameters=BurgersParameters,
    sample=sample,
    solve=solve,
    batched_parameters=BATCHED,
)
