"""Shallow water: a round dam breaks, over flat or uneven ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec, Grid
from spectrakan.numerics.finite_volume import disk_cover
from spectrakan.numerics.time_integration import advance_to_frames, for_each_part, samples_at_once
from spectrakan.pde.equation import Equation, Positive, Range, check_ranges
from spectrakan.pde.shallow_water_scheme import Basin, advance, wave_rate

BOUNDS = ((-2.5, 2.5), (-2.5, 2.5))


@settings
class ShallowWaterParameters:
    """Gravity, the dams that are drawn, and numerical settings."""

    gravity: Positive = 1.0
    """Gravitational acceleration g."""
    family: Literal["general", "pdebench"] = "general"
    """`general`: centre, radius and inner height drawn continuously, cell averages of the disk: no two
    samples are equal. `pdebench`: a dam in the middle, height 2, its radius from NumPy's default generator
    seeded by the sample's number, cells in or out by their centre: 81 distinct states at 128², 24 at 64²."""
    centre: Range = (-0.5, 0.5)
    """Range of both coordinates of the dam's centre (general family)."""
    radius: Range = (0.3, 0.7)
    """Range of the dam's radius (both families)."""
    inner_height: Range = (1.5, 2.5)
    """Range of the height inside the dam (general family); it is 1 outside."""
    first_seed: Annotated[int, Field(ge=0)] = 0
    """Number of the first sample of the pdebench family."""
    boundary: Literal["outflow", "wall", "periodic"] = "outflow"
    """What the sides of the basin do."""
    courant: Annotated[float, Field(gt=0.0, le=1.0)] = 0.8
    """Largest fraction of a cell that a wave may cross in a step, summed over both axes."""

    def __post_init__(self) -> None:
        check_ranges(self, ("centre", "radius", "inner_height"), positive=("radius", "inner_height"))


def draw_dam(
    num_samples: int, shape: tuple[int, ...], parameters: ShallowWaterParameters, generator: torch.Generator
) -> Tensor:
    """Water at rest behind round dams, `(num_samples, nx, ny, 3)`: height, velocity_x, velocity_y.

    >>> drawn = draw_dam(2, (32, 32), ShallowWaterParameters(), torch.Generator().manual_seed(0))
    >>> bool((drawn[0] != drawn[1]).any()), float(drawn[..., 1:].abs().max())
    (True, 0.0)
    """
    grid = Grid.uniform(shape, BOUNDS)
    device = generator.device
    if parameters.family == "pdebench":
        height = _centred_dams(num_samples, grid, parameters).to(device)
    else:
        drawn = torch.rand((num_samples, 4), generator=generator, dtype=torch.float64, device=device)
        ranges = (parameters.centre, parameters.centre, parameters.radius, parameters.inner_height)
        x, y, radius, inner = (
            low + (high - low) * column for (low, high), column in zip(ranges, drawn.T, strict=True)
        )
        edges_x, edges_y = (edge.to(device) for edge in grid.edges)
        cover = disk_cover(edges_x - x[:, None], edges_y - y[:, None], radius)
        height = 1.0 + (inner - 1.0)[:, None, None] * cover
    return torch.stack([height, torch.zeros_like(height), torch.zeros_like(height)], dim=-1)


def _centred_dams(num_samples: int, grid: Grid, parameters: ShallowWaterParameters) -> Tensor:
    seeds = range(parameters.first_seed, parameters.first_seed + num_samples)
    radius = torch.tensor(
        [np.random.default_rng(seed).uniform(*parameters.radius) for seed in seeds], dtype=torch.float64
    )
    x, y = grid.coordinates
    distance = (x[:, None] ** 2 + y[None, :] ** 2).sqrt()
    return torch.where(distance <= radius[:, None, None], 2.0, 1.0).to(torch.float64)


def solve(initial: Tensor, times: Sequence[float], parameters: ShallowWaterParameters) -> Tensor:
    """Height and velocities at increasing `times` >= 0, from the state at time 0.

        h_t + (hu)_x + (hv)_y = 0
        (hu)_t + (hu² + g h²/2)_x + (huv)_y = -g h b_x
        (hv)_t + (huv)_x + (hv² + g h²/2)_y = -g h b_y

    `initial` holds height, velocity_x, velocity_y and, where the ground is uneven, its level b as a fourth
    channel. The ground must be under water everywhere; heights stay positive. A sample's solution does not depend
    on the other samples of the batch.

    >>> start = draw_dam(1, (16, 16), ShallowWaterParameters(), torch.Generator().manual_seed(0))
    >>> later = solve(start, (0.0, 0.5), ShallowWaterParameters(boundary="wall"))
    >>> bool((later[0, :, ..., 0].sum((1, 2)).diff().abs() < 1e-10).all())  # walls keep the water
    True
    """
    basin = _basin(tuple(initial.shape[1:3]), parameters)
    start = _conserved(initial.detach())
    channels, samples, nx, ny = start.shape
    frames = start.new_empty((samples, len(times), 3, nx, ny))

    def run(part: slice) -> None:
        made = advance_to_frames(
            start[:, part],
            times,
            lambda state, step, _: advance(state, step, basin),
            lambda state: parameters.courant / wave_rate(state, basin),
            axis=1,
            pool=samples,
        )
        frames[part, :, 0] = made[:, :, 0]
        torch.div(made[:, :, 1:3], made[:, :, :1], out=frames[part, :, 1:])

    for_each_part(samples, samples_at_once(initial, channels * (nx + 4) * (ny + 4)), run)
    return frames.movedim(2, -1)


def _basin(shape: tuple[int, ...], parameters: ShallowWaterParameters) -> Basin:
    spacing_x, spacing_y = ((high - low) / size for size, (low, high) in zip(shape, BOUNDS, strict=True))
    return Basin(parameters.gravity, (spacing_x, spacing_y), parameters.boundary)


def _conserved(initial: Tensor) -> Tensor:
    """Height, momenta and, if given, the level of the ground; channels first."""
    if initial.shape[-1] not in (3, 4):
        raise ShapeError(
            "shallow_water2d starts from (B, nx, ny, 3) with height, velocity_x, velocity_y, or 4 channels "
            f"with the level of the ground as the last, got {tuple(initial.shape)}"
        )
    height, velocity_x, velocity_y, *bottom = initial.double().unbind(-1)
    if not bool((height > 0).all()):
        raise ConfigError(
            f"the ground must be under water everywhere: height > 0, got a least of {float(height.min()):g}"
        )
    return torch.stack([height, height * velocity_x, height * velocity_y, *bottom])


EQUATION = Equation(
    name="shallow_water2d",
    summary="shallow water after a round dam breaks: height and velocities on (-2.5,2.5)², open sides",
    fields=(FieldSpec("height", positive=True), FieldSpec("velocity_x"), FieldSpec("velocity_y")),
    bounds=BOUNDS,
    boundary=("outflow", "outflow"),
    resolution=(64, 64),
    times=tuple(frame / 100 for frame in range(101)),
    history=10,
    parameters=ShallowWaterParameters,
    sample=draw_dam,
    solve=solve,
)
