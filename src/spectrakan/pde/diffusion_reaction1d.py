"""Fisher-KPP: a population that spreads and saturates.

du/dt = nu d2u/dx2 + rho u (1 - u)   on (0, 1), periodic

Shape legend: fields `(batch, cells, 1)`.

PDEBench steps this equation in float32 by time steps so small that u (1 - u) dt falls below the rounding of
u: at nu = 0.5 on 1024 points a value of 0.8 never changes. The solver here works in float64.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ShapeError, SpectraKANError
from spectrakan.fields import FieldSpec
from spectrakan.numerics.random_field import MultiModeField
from spectrakan.pde.equation import Equation, NotNegative, Positive, part_of, per_sample

BATCHED = ("nu", "rho")
_REFERENCE_CELLS = 1024
_SAMPLES_AT_ONCE = 256
_LAYER = 0.05
"""Until this time steps grow with time: splitting needs steps as short as the decay of fine structure."""


@settings
class DiffusionReaction1DParameters:
    """Physics and numerics of `diffusion_reaction1d`; the defaults are the task's."""

    nu: NotNegative = 0.5
    """Diffusivity."""
    rho: float = 1.0
    """Rate of growth."""
    max_step: Positive = 0.005
    """Largest time step; the error falls with its fourth power (below 1e-9 at the defaults)."""


def sample(
    num_samples: int,
    resolution: tuple[int, ...],
    parameters: DiffusionReaction1DParameters,
    generator: torch.Generator,
) -> Tensor:
    """Draw initial states `(num_samples, cells, 1)`: a `MultiModeField` of 4 modes scaled to [0, 1].

    One seed gives the same functions at every resolution.
    """
    del parameters  # The family does not depend on them.
    (cells,) = resolution
    waves = MultiModeField(length=1.0, num_modes=4, window_probability=0.1)
    reference = _centres(_REFERENCE_CELLS)
    return waves.draw_scaled(_centres(cells), reference, num_samples, generator, constant=0.5).unsqueeze(-1)


def solve(initial: Tensor, times: Sequence[float], parameters: DiffusionReaction1DParameters) -> Tensor:
    """States at the given times: `(batch, cells, 1)` -> `(batch, len(times), cells, 1)`, float64.

    Strang splitting S(h): half a step of u' = rho u (1 - u), exact; a step of diffusion, exact for the
    Fourier series through the cells; half a step of reaction. Extrapolated from S(h) and S(h/2)^2 to fourth
    order in time; spectral in space. A solution that goes to infinity (rho > 0 below 0, rho < 0 above 1) raises
    `SpectraKANError` with the time. `nu` and `rho` may be tensors `(batch,)`.

    >>> level = solve(torch.full((1, 8, 1), 0.5), [0.0, 1.0], DiffusionReaction1DParameters())
    >>> level[0, :, 0, 0]  # the logistic curve, 1 / (1 + exp(-t))
    tensor([0.5000, 0.7311], dtype=torch.float64)
    """
    if initial.ndim != 3 or initial.shape[-1] != 1:
        raise ShapeError(f"expected states (batch, cells, 1), got {tuple(initial.shape)}")
    states = initial[..., 0].to(torch.float64)
    frames = states.new_empty((len(states), len(times), states.shape[1]))
    for start in range(0, len(states), _SAMPLES_AT_ONCE):
        part = slice(start, start + _SAMPLES_AT_ONCE)
        state, now = states[part].clone(), 0.0
        chosen = part_of(parameters, BATCHED, part)
        for index, time in enumerate(times):
            state = _advance(state, now, float(time), chosen, first=start)
            frames[part, index] = state
            now = float(time)
    return frames.unsqueeze(-1)


def _advance(
    state: Tensor, now: float, until: float, parameters: DiffusionReaction1DParameters, *, first: int
) -> Tensor:
    """From one time to another by extrapolated Strang steps, (4 S(h/2) S(h/2) u - S(h) u) / 3.

    `first` is the number of the first of these samples in the batch.
    """
    cells = state.shape[-1]
    wave_numbers = 2 * math.pi * torch.fft.rfftfreq(cells, 1.0 / cells, dtype=state.dtype, device=state.device)
    rates = per_sample(parameters.nu, state) * wave_numbers**2
    rho = per_sample(parameters.rho, state)
    fastest = rates.amax(-1, keepdim=True).clamp_min(1e-300).reciprocal()
    for clock, step in _graded_steps(now, until, fastest, parameters.max_step):
        growth = step * rho
        # Powers of two: torch takes exp from MKL, which starts its own threads for every short array.
        half = torch.exp2(rates * (step * (-0.5 / math.log(2.0))))
        whole = half.square()
        react = partial(_react, clock=clock, first=first)
        once = react(_diffuse(react(state, 0.5 * growth), whole), 0.5 * growth)
        twice = _diffuse(react(state, 0.25 * growth), half)
        twice = react(_diffuse(react(twice, 0.5 * growth), half), 0.25 * growth)
        made = torch.lerp(once, twice, 4.0 / 3.0)
        # A sample that has arrived waits for the others with steps of 0.
        state = made if bool((step > 0).all()) else torch.where(step > 0, made, state)
    return state


def _diffuse(state: Tensor, decay: Tensor) -> Tensor:
    """Every Fourier mode of the state times its own decay."""
    spectrum = torch.fft.rfft(state).mul_(decay)
    result: Tensor = torch.fft.irfft(spectrum, n=state.shape[-1])
    return result


def _react(state: Tensor, growth: Tensor, clock: Tensor, first: int) -> Tensor:
    """Exact logistic growth over rho t = `growth`, g: u / (u + (1 - u) e^-g); the divisor is 0 at blow-up."""
    gain = -torch.expm1(-growth)
    divisor = (state * gain).add_(1.0 - gain)
    if not float(divisor.amin()) > 0.0:
        index = int((~(divisor > 0.0)).any(-1).nonzero()[0])
        time = float(clock[min(index, len(clock) - 1)])
        raise SpectraKANError(
            f"the solution of sample {first + index} goes to infinity near t = {time:.4g}: with rho > 0 values below "
            "0 do so in finite time, with rho < 0 values above 1; start from values between 0 and 1, or end at an "
            "earlier time"
        )
    return state / divisor


def _graded_steps(now: float, until: float, fastest: Tensor, max_step: float) -> Iterator[tuple[Tensor, Tensor]]:
    """Time and step of each sample `(B or 1, 1)` from now to until; a sample that has arrived gets steps of 0.

    The step is max_step, but near t = 0 proportional to t plus the fastest decay time. At time t only structure
    that decays slower than 1/t is left; a step that is a small fraction of t therefore resolves it, and the
    splitting keeps its order on rough initial states.
    """
    clock = torch.full_like(fastest, now)
    while bool(((remaining := until - clock) > 1e-13 * max(until, 1.0)).any()):
        step = max_step * ((clock + fastest) / _LAYER).clamp_max(1.0)
        last = remaining / (remaining / step - 1e-9).ceil().clamp_min(1.0)
        step = torch.where(remaining < 4.0 * step, last, step)
        step = torch.where(remaining > 1e-13 * max(until, 1.0), step, 0.0)
        yield clock, step
        clock = clock + step


def _centres(cells: int) -> Tensor:
    return (torch.arange(cells, dtype=torch.float64) + 0.5) / cells


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
    batched_parameters=BATCHED,
)
