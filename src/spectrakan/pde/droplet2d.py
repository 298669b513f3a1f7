"""Shallow water in a walled box after a droplet has fallen in, by the Lax-Friedrichs scheme.

Shape legend: fields `(B, nx, ny, 3)`; a state of the scheme is `(3, B, nx, ny)` with mass rho and the momenta
rho v1 and rho v2, and gravity is a number or `(B, 1, 1)`.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import SpectraKANError
from spectrakan.fields import FieldSpec, Grid
from spectrakan.numerics.random_field import uniform_draws
from spectrakan.numerics.time_integration import check_times, for_each_part, samples_at_once
from spectrakan.pde.equation import Equation, Positive, Range, check_ranges, part_of, per_sample

Ratio = tuple[float, float]
"""Time step over cell width along both axes."""
BATCHED = ("gravity",)


@settings
class DropletParameters:
    """Gravity, the droplets that are drawn, and the step of the scheme."""

    gravity: Positive = 9.81
    """Gravitational acceleration g. The paper names none, but measures time in seconds: the unit box is taken
    as metres and g as on earth. The scheme is stable with it, waves crossing at most 0.4 cells a step (0.5 is
    the limit); with g = 1 they would cross 20 % of the box in the time that is scored."""
    amplitude: Range = (1.5, 2.5)
    """Range of h, the height of the droplet over the water of height 1."""
    width: Range = (0.002, 0.008)
    """Range of w in exp(-|x - centre|²/w)."""
    centre: Range = (0.4, 0.6)
    """Range of both coordinates of the droplet's centre."""
    solver_step: Positive = 0.002
    """Time step on 32 cells an axis. It shrinks with the cells, so that refinement converges; the
    scheme's viscosity dx²/(4 dt) is large, and part of the task."""

    def __post_init__(self) -> None:
        check_ranges(self, ("amplitude", "width", "centre"), positive=("width",))


def draw_droplet(
    num_samples: int, shape: tuple[int, ...], parameters: DropletParameters, generator: torch.Generator
) -> Tensor:
    """The state at time 0, at rest, `(num_samples, nx, ny, 3)`: rho = 1 + h exp(-|x - centre|²/w).

    >>> drawn = draw_droplet(2, (32, 32), DropletParameters(), torch.Generator().manual_seed(0))
    >>> bool(drawn[..., 0].max() > 2.0), float(drawn[..., 1:].abs().max())
    (True, 0.0)
    """
    drawn = uniform_draws((num_samples, 4), 0.0, 1.0, generator)
    ranges = (parameters.amplitude, parameters.width, parameters.centre, parameters.centre)
    amplitude, width, *centres = (
        (low + (high - low) * column)[:, None] for (low, high), column in zip(ranges, drawn.T, strict=True)
    )
    profile_x, profile_y = (
        torch.exp(-((points.to(generator.device) - centre) ** 2) / width)
        for points, centre in zip(Grid.uniform(shape).coordinates, centres, strict=True)
    )
    rho = 1.0 + amplitude[..., None] * profile_x[:, :, None] * profile_y[:, None, :]
    return torch.stack([rho, torch.zeros_like(rho), torch.zeros_like(rho)], dim=-1)


def solve(initial: Tensor, times: Sequence[float], parameters: DropletParameters) -> Tensor:
    """The state at increasing `times` >= 0, from that at time 0 `(B, nx, ny, 3)`, between reflecting walls.

        rho_t + (rho v1)_x + (rho v2)_y = 0
        (rho v1)_t + (rho v1² + g rho²/2)_x + (rho v1 v2)_y = 0
        (rho v2)_t + (rho v1 v2)_x + (rho v2² + g rho²/2)_y = 0

    Gravity may be a tensor `(B,)`.

    >>> start = draw_droplet(1, (32, 32), DropletParameters(), torch.Generator().manual_seed(0))
    >>> later = solve(start, (0.002, 0.5), DropletParameters())
    >>> [round(float(frame[..., 0].mean() / start[..., 0].mean()), 12) for frame in later[0]]
    [1.0, 1.0]
    """
    check_times(times)
    samples, nx, ny, _ = initial.shape
    longest = parameters.solver_step * 32 / max(nx, ny)
    intervals = [later - earlier for earlier, later in pairwise((0.0, *times))]
    # Times are sums of steps up to rounding: 0.01 is five steps of 0.002, not six.
    counts = [math.ceil(interval / longest - 1e-6) for interval in intervals]
    lengths = [interval / max(count, 1) for interval, count in zip(intervals, counts, strict=True)]
    frames = initial.new_empty((samples, len(counts), nx, ny, 3), dtype=torch.float64)

    def run(part: slice) -> None:
        rho, *velocities = initial[part, ..., :3].detach().double().unbind(-1)
        state = torch.stack([rho, *(rho * velocity for velocity in velocities)])
        gravity = per_sample(part_of(parameters, BATCHED, part).gravity, state[0])
        stepper = SteppedInPlace(state, gravity)
        for frame, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            ratio = (length * nx, length * ny)
            for _ in range(count):
                stepper.step(ratio)
            check_stable(stepper.state, ratio, gravity)
            rho, *momenta = stepper.state
            frames[part, frame] = torch.stack([rho, *(momentum / rho for momentum in momenta)], dim=-1)

    for_each_part(samples, samples_at_once(initial, 3 * nx * ny), run)
    return frames


class SteppedInPlace:
    """Steps of the scheme without new memory at every step; `state` is stepped in place.

        q_ij <- sum over both axes of (q/4 + r F/2)_{i-1} + (q/4 - r F/2)_{i+1},    r = dt/dx:

    a quarter of each cell moves to every neighbour; what meets a wall comes back with its normal momentum
    reversed, so mass is conserved to rounding. A cell's new value does not depend on its old one, so the two
    colours of a chequerboard mix only at the walls: late, nearly still frames show that pattern.
    """

    def __init__(self, state: Tensor, gravity: float | Tensor) -> None:
        self.state, self._half_gravity = state, 0.5 * gravity
        self._later, self._quarter, self._flux, self._ahead = (torch.empty_like(state) for _ in range(4))
        self._velocity = torch.empty_like(state[1:])
        self._pressure = torch.empty_like(state[0])

    def step(self, ratio: Ratio) -> None:
        """Advance the state by one step."""
        state, later = self.state, self._later
        torch.mul(state, 0.25, out=self._quarter)
        torch.div(state[1:], state[0], out=self._velocity)
        torch.mul(state[0], state[0], out=self._pressure).mul_(self._half_gravity)
        later.zero_()
        for axis in (0, 1):
            # What each cell sends forward and backward along the axis.
            half = 0.5 * ratio[axis]
            torch.mul(state, self._velocity[axis].mul_(half), out=self._flux)
            self._flux[1 + axis].add_(self._pressure, alpha=half)
            ahead = torch.add(self._quarter, self._flux, out=self._ahead)
            back = torch.sub(self._quarter, self._flux, out=self._flux)
            along, last = axis + 2, state.shape[axis + 2] - 1
            later.narrow(along, 1, last).add_(ahead.narrow(along, 0, last))
            later.narrow(along, 0, last).add_(back.narrow(along, 1, last))
            first_wall, last_wall = back.narrow(along, 0, 1), ahead.narrow(along, last, 1)
            first_wall[1 + axis].neg_()
            last_wall[1 + axis].neg_()
            later.narrow(along, 0, 1).add_(first_wall)
            later.narrow(along, last, 1).add_(last_wall)
        self.state, self._later = later, state


def check_stable(state: Tensor, ratio: Ratio, gravity: float | Tensor) -> None:
    """Refuse a state whose waves cross more than half a cell per step along an axis."""
    celerity = (gravity * state[0]).sqrt()
    for momentum, step in zip(state[1:], ratio, strict=True):
        courant = float(((momentum / state[0]).abs() + celerity).max()) * step
        if not courant <= 0.5:
            raise SpectraKANError(
                f"Lax-Friedrichs needs waves that cross at most 0.5 cells a step, got {courant:.3g}; "
                "use a smaller solver_step or gravity"
            )


EQUATION = Equation(
    name="droplet2d",
    summary="shallow water after a falling droplet: rho and velocities in a walled unit box, Lax-Friedrichs",
    fields=(FieldSpec("rho", positive=True), FieldSpec("velocity_x"), FieldSpec("velocity_y")),
    bounds=((0.0, 1.0), (0.0, 1.0)),
    boundary=("wall", "wall"),
    resolution=(32, 32),
    times=(0.002, *(frame / 100 for frame in range(1, 101))),
    history=1,
    parameters=DropletParameters,
    sample=draw_droplet,
    solve=solve,
    batched_parameters=BATCHED,
)
