"""Fisher-KPP: a population that spreads and saturates.

du/dt = nu d2u/dx2 + rho u (1 - u)   on (0, 1), periodic

Shape legend: fields `(batch, cells, 1)`.

PDEBench steps this equation in float32 by time steps so small that u (1 - u) dt falls below the rounding of
u: at nu = 0.5 on 1024 points a value of 0.8 stays for ever. The solver here works in float64, and its means
rise as the equation says; `compat="pdebench"` repeats the float32 stepping, for comparison only. It agrees
with PDEBench's files to about 1e-4, not to the last bit, for rounding depends on how a compiler fuses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec
from spectrakan.numerics.finite_difference import differentiate_frames
from spectrakan.numerics.random_field import multi_mode_field
from spectrakan.pde.equation import Equation

_REFERENCE_CELLS = 1024
_SAMPLES_AT_ONCE = 256
_LAYER = 0.05
"""Steps grow with time until this time: while fine structure decays, splitting needs steps of its scale."""


@settings
class DiffusionReaction1DParameters:
    """Physics and numerics of `diffusion_reaction1d`; the defaults are the task's."""

    nu: Annotated[float, Field(ge=0)] = 0.5
    """Diffusivity."""
    rho: float = 1.0
    """Rate of growth."""
    max_step: Annotated[float, Field(gt=0)] = 0.005
    """Largest time step; the error falls with its fourth power (below 1e-9 at the defaults)."""
    compat: Literal["none", "pdebench"] = "none"
    """`pdebench` repeats its explicit float32 steps, whose reaction stalls; slow."""


def sample(
    num_samples: int,
    resolution: tuple[int, ...],
    parameters: DiffusionReaction1DParameters,
    generator: torch.Generator,
) -> Tensor:
    """Draw initial states `(num_samples, cells, 1)`: a `multi_mode_field` of 4 modes scaled to [0, 1].

    One seed gives the same functions at every resolution.
    """
    del parameters  # The family does not depend on them.
    (cells,) = resolution
    both = torch.cat([_centres(_REFERENCE_CELLS), _centres(cells)])
    waves = multi_mode_field(both, num_samples, length=1.0, num_modes=4, window_probability=0.1, generator=generator)
    lowest, highest = waves[:, :_REFERENCE_CELLS].aminmax(dim=1, keepdim=True)
    span = highest - lowest
    shape = torch.where(span > 0.0, (waves - lowest) / span, 0.5)
    return shape[:, _REFERENCE_CELLS:].clamp(0.0, 1.0).unsqueeze(-1)


def solve(initial: Tensor, times: Sequence[float], parameters: DiffusionReaction1DParameters) -> Tensor:
    """States at the given times: `(batch, cells, 1)` -> `(batch, len(times), cells, 1)`, float64.

    Strang splitting S(h): half a step of u' = rho u (1 - u), exact; a step of diffusion, exact for the
    Fourier series through the cells; half a step of reaction. Extrapolated from S(h) and S(h/2)^2 to fourth
    order in time; spectral in space.

    >>> level = solve(torch.full((1, 8, 1), 0.5), [0.0, 1.0], DiffusionReaction1DParameters())
    >>> level[0, :, 0, 0]  # the logistic curve, 1 / (1 + exp(-t))
    tensor([0.5000, 0.7311], dtype=torch.float64)
    """
    _check(initial, times)
    advance = _advance_float32 if parameters.compat == "pdebench" else _advance_split
    states = initial[..., 0].to(torch.float64)
    frames = states.new_empty((len(states), len(times), states.shape[1]))
    for start in range(0, len(states), _SAMPLES_AT_ONCE):
        chosen = slice(start, start + _SAMPLES_AT_ONCE)
        state, now = states[chosen].clone(), 0.0
        for index, time in enumerate(times):
            state = advance(state, now, float(time), parameters)
            frames[chosen, index] = state
            now = float(time)
    return frames.unsqueeze(-1)


def residual(
    values: Tensor, inputs: Tensor | None, times: Sequence[float], parameters: DiffusionReaction1DParameters
) -> Tensor:
    """How far frames are from solving the equation: `(batch, time, cells, 1)` -> `(batch, time)` in [0, 1].

    |u_t - nu u_xx - rho u (1 - u)| / (|u_t| + |nu u_xx| + |rho u (1 - u)|) in the root mean square over
    cells; spectral in space, fourth order in time. Differentiable. The first frames change too fast for any
    difference in time: judge the later ones.
    """
    del inputs  # An evolution equation has no input but its own earlier frames.
    u = values[..., 0]
    rate = differentiate_frames(u, times, axis=1)
    wave = _wave_numbers(u)
    diffusion: Tensor = -parameters.nu * torch.fft.irfft(torch.fft.rfft(u) * wave**2, n=u.shape[-1])
    reaction = parameters.rho * u * (1.0 - u)
    size = _norm(rate) + _norm(diffusion) + _norm(reaction)
    return _norm(rate - diffusion - reaction) / (size + torch.finfo(values.dtype).tiny)


def _advance_split(state: Tensor, now: float, until: float, parameters: DiffusionReaction1DParameters) -> Tensor:
    """From one time to another by extrapolated Strang steps, (4 S(h/2) S(h/2) u - S(h) u) / 3."""
    rates = parameters.nu * _wave_numbers(state) ** 2
    fastest = 1.0 / max(float(rates.max()), 1e-300)
    for step in _graded_steps(now, until, fastest, parameters.max_step):
        growth = step * parameters.rho
        # Powers of two, for exp is MKL's, which wakes its own threads for every short array.
        half = torch.exp2(rates * (-0.5 * step / math.log(2.0)))
        whole = half.square()
        once = _react(_diffuse(_react(state, 0.5 * growth), whole), 0.5 * growth)
        twice = _diffuse(_react(state, 0.25 * growth), half)
        twice = _react(_diffuse(_react(twice, 0.5 * growth), half), 0.25 * growth)
        state = torch.lerp(once, twice, 4.0 / 3.0)
    return state


def _diffuse(state: Tensor, decay: Tensor) -> Tensor:
    """Every Fourier mode of the state times its own decay."""
    spectrum = torch.fft.rfft(state).mul_(decay)
    result: Tensor = torch.fft.irfft(spectrum, n=state.shape[-1])
    return result


def _react(state: Tensor, growth: float) -> Tensor:
    """Exact logistic growth over rho t = `growth`: u e^g / (1 + u (e^g - 1))."""
    factor = math.exp(growth)
    return (state * factor).div_((state * (factor - 1.0)).add_(1.0))


def _graded_steps(now: float, until: float, fastest: float, max_step: float) -> Iterator[float]:
    """Steps from now to until: max_step, but near t = 0 in proportion to t plus the fastest decay time.

    At time t only structure that decays slower than 1/t is left; a step that is a small share of t therefore
    resolves it, and the splitting keeps its order on rough initial states.
    """
    while until - now > 1e-13 * max(until, 1.0):
        step = max_step * min(1.0, (now + fastest) / _LAYER)
        remaining = until - now
        step = remaining / max(1, math.ceil(remaining / step - 1e-9)) if remaining < 4.0 * step else step
        yield step
        now += step


def _advance_float32(state: Tensor, now: float, until: float, parameters: DiffusionReaction1DParameters) -> Tensor:
    """PDEBench's midpoint rule in float32 with dt = dx^2 / (8 nu).

    u* = R_{dt/2}(u) + dt/2 nu D2 u,  u' = R_dt(u) + dt nu D2 u*,  R_t(u) = 1 / (1 + e^{-rho t} (1 - u) / u)
    """
    if parameters.nu <= 0:
        raise ConfigError("compat='pdebench' takes its time step from nu, which must be positive")
    width = 1.0 / state.shape[-1]
    largest = 0.125 * width**2 / parameters.nu
    u = state.to(torch.float32)
    while until - now > 1e-12:
        step = min(largest, until - now)
        half, whole = math.exp(-0.5 * parameters.rho * step), math.exp(-parameters.rho * step)
        share = step * parameters.nu / width**2
        middle = 1.0 / (1.0 + half * (1.0 - u) / u) + 0.5 * share * _second_difference(u)
        u = 1.0 / (1.0 + whole * (1.0 - u) / u) + share * _second_difference(middle)
        now += step
    return u.to(torch.float64)


def _second_difference(u: Tensor) -> Tensor:
    return u.roll(1, -1) + u.roll(-1, -1) - 2.0 * u


def _wave_numbers(u: Tensor) -> Tensor:
    cells = u.shape[-1]
    cycles: Tensor = torch.fft.rfftfreq(cells, d=1.0 / cells, dtype=u.dtype, device=u.device)
    return 2 * math.pi * cycles


def _centres(cells: int) -> Tensor:
    return (torch.arange(cells, dtype=torch.float64) + 0.5) / cells


def _norm(values: Tensor) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(values, dim=-1)
    return size


def _check(initial: Tensor, times: Sequence[float]) -> None:
    if initial.ndim != 3 or initial.shape[-1] != 1 or initial.shape[1] < 2:
        raise ShapeError(f"expected states (batch, cells, 1) with 2 cells or more, got {tuple(initial.shape)}")
    if not bool(torch.isfinite(initial).all()):
        raise ConfigError("initial states must be finite")
    values = [0.0, *(float(time) for time in times)]
    if len(values) == 1 or not all(math.isfinite(time) for time in values) or values != sorted(values):
        raise ConfigError(f"times must be finite, not negative and never decrease, got {values[1:]}")


EQUATION = Equation(
    name="diffusion_reaction1d",
    summary="Diffusion and logistic growth in 1D (Fisher-KPP)",
    fields=(FieldSpec(name="u"),),
    bounds=((0.0, 1.0),),
    boundary=("periodic",),
    resolution=(256,),
    times=tuple(index / 100 for index in range(101)),
    history=5,
    parameters=DiffusionReaction1DParameters,
    sample=sample,
    solve=solve,
    residual=residual,
)
