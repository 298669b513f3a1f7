"""Shallow water: a round dam breaks, over flat ground.

The scheme is of second order; water at rest stays at rest, and a cell that would run dry is refused.

Shape legend: fields `(B, nx, ny, 3)`; a state of the scheme is `(3, B, nx, ny)` with the water column h and the
momenta hu and hv.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ConfigError, ShapeError, SpectraKANError
from spectrakan.fields import FieldSpec, Grid
from spectrakan.numerics.finite_volume import GhostBoundary, disk_cover, mc_slope, pad_ghost_cells
from spectrakan.numerics.time_integration import advance_to_frames, for_each_part, samples_at_once
from spectrakan.pde.equation import Equation, Positive, Range, check_ranges

BOUNDS = ((-2.5, 2.5), (-2.5, 2.5))
Sides = tuple[Tensor, Tensor]

DRY = 1e-12
"""Least height of a reconstructed column at a face; cells stay above 0."""


@settings
class ShallowWaterParameters:
    """Gravity, the dams that are drawn, and numerical settings."""

    gravity: Positive = 1.0
    """Gravitational acceleration g."""
    centre: Range = (-0.5, 0.5)
    """Range of both coordinates of the dam's centre."""
    radius: Range = (0.3, 0.7)
    """Range of the dam's radius."""
    inner_height: Range = (1.5, 2.5)
    """Range of the height inside the dam; it is 1 outside."""
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

    Cells hold averages of the disk, so no two samples are equal; PDEBench's 1,000 dams are 81 states at 128².

    >>> drawn = draw_dam(2, (32, 32), ShallowWaterParameters(), torch.Generator().manual_seed(0))
    >>> bool((drawn[0] != drawn[1]).any()), float(drawn[..., 1:].abs().max())
    (True, 0.0)
    """
    grid = Grid.uniform(shape, BOUNDS)
    device = generator.device
    drawn = torch.rand((num_samples, 4), generator=generator, dtype=torch.float64, device=device)
    ranges = (parameters.centre, parameters.centre, parameters.radius, parameters.inner_height)
    x, y, radius, inner = (low + (high - low) * column for (low, high), column in zip(ranges, drawn.T, strict=True))
    edges_x, edges_y = (edge.to(device) for edge in grid.edges)
    cover = disk_cover(edges_x - x[:, None], edges_y - y[:, None], radius)
    height = 1.0 + (inner - 1.0)[:, None, None] * cover
    return torch.stack([height, torch.zeros_like(height), torch.zeros_like(height)], dim=-1)


def solve(initial: Tensor, times: Sequence[float], parameters: ShallowWaterParameters) -> Tensor:
    """Height and velocities at increasing `times` >= 0, from the state at time 0.

        h_t + (hu)_x + (hv)_y = 0
        (hu)_t + (hu² + g h²/2)_x + (huv)_y = 0
        (hv)_t + (huv)_x + (hv² + g h²/2)_y = 0

    `initial` holds height, velocity_x and velocity_y. The ground must be under water everywhere; heights stay
    positive. A sample's solution does not depend on the other samples of the batch.

    >>> start = draw_dam(1, (16, 16), ShallowWaterParameters(), torch.Generator().manual_seed(0))
    >>> later = solve(start, (0.0, 0.5), ShallowWaterParameters(boundary="wall"))
    >>> bool((later[0, :, ..., 0].sum((1, 2)).diff().abs() < 1e-10).all())  # walls keep the water
    True
    """
    spacing_x, spacing_y = ((high - low) / size for size, (low, high) in zip(initial.shape[1:3], BOUNDS, strict=True))
    basin = Basin(parameters.gravity, (spacing_x, spacing_y), parameters.boundary)
    start = _conserved(initial.detach())
    _, samples, nx, ny = start.shape
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
        torch.div(made[:, :, 1:], made[:, :, :1], out=frames[part, :, 1:])

    for_each_part(samples, samples_at_once(initial, 3 * (nx + 4) * (ny + 4)), run)
    return frames.movedim(2, -1)


def _conserved(initial: Tensor) -> Tensor:
    """Height and momenta, channels first."""
    if initial.shape[-1] != 3:
        raise ShapeError(
            f"shallow_water2d starts from (B, nx, ny, 3): height, velocity_x, velocity_y; got {tuple(initial.shape)}"
        )
    height, velocity_x, velocity_y = initial.double().unbind(-1)
    if not bool((height > 0).all()):
        raise ConfigError(
            f"the ground must be under water everywhere: height > 0, got a least of {float(height.min()):g}"
        )
    return torch.stack([height, height * velocity_x, height * velocity_y])


@dataclass(frozen=True)
class Basin:
    """What holds the water: gravity, cell widths, and what its sides do."""

    gravity: float
    spacing: tuple[float, float]
    boundary: GhostBoundary


def wave_rate(state: Tensor, basin: Basin) -> Tensor:
    """Cells that the fastest wave of each sample crosses per time, summed over the axes."""
    height = state[0]
    celerity = (basin.gravity * height).sqrt_()
    rate = torch.zeros((), dtype=height.dtype, device=height.device)
    for momentum, width in zip(state[1:], basin.spacing, strict=True):
        speed = (momentum / height).abs_().add_(celerity)
        rate = rate + speed.amax(dim=(1, 2)) / width
    return rate


def advance(state: Tensor, step: Tensor, basin: Basin) -> Tensor:
    """The state after one MUSCL-Hancock step of each sample; a step of 0 changes nothing.

    Limited slopes of height and velocities, half a step of

        h_t + u h_x + h u_x + v h_y + h v_y = 0,    u_t + u u_x + v u_y + g h_x = 0,    v_t likewise

    inside each cell, then the flux between the two half-step states at each face.
    """
    primitive, slopes = _reconstruct(state, basin)
    moved = _half_step(primitive, slopes, step, basin)
    later = state.clone()
    for axis in (0, 1):
        flux = _face_flux(*_face_states(moved, slopes[axis], axis), axis, basin.gravity)
        later.addcmul_(flux.diff(dim=axis + 2), (step / basin.spacing[axis])[:, None, None], value=-1.0)
    if not float(later[0].amin()) > 0.0:
        raise SpectraKANError(
            "the water is too thin for the scheme: a cell runs dry; use deeper water or a finer grid"
        )
    return later


def _pad(values: Tensor, boundary: GhostBoundary, odd: tuple[bool, bool] = (False, False)) -> Tensor:
    across = pad_ghost_cells(values, -2, boundary, width=2, odd=odd[0])
    return pad_ghost_cells(across, -1, boundary, width=2, odd=odd[1])


def _reconstruct(state: Tensor, basin: Basin) -> tuple[Tensor, Sides]:
    """Height and velocities with one ghost cell, and their slopes along both axes, `(3, B, nx + 2, ny + 2)` each."""
    height = _pad(state[0], basin.boundary)
    velocity_x = _pad(state[1], basin.boundary, odd=(True, False)).div_(height)
    velocity_y = _pad(state[2], basin.boundary, odd=(False, True)).div_(height)
    padded = torch.stack([height, velocity_x, velocity_y])
    slopes = (mc_slope(padded[..., 1:-1], -2), mc_slope(padded[..., 1:-1, :], -1))
    return padded[..., 1:-1, 1:-1], slopes


def _half_step(primitive: Tensor, slopes: Sides, step: Tensor, basin: Basin) -> Tensor:
    """Height and velocities half a time step later, from the slopes inside each cell."""
    moved = primitive.clone()
    for axis in (0, 1):
        half = (-0.5 / basin.spacing[axis] * step)[:, None, None]
        height_slope, normal_slope = slopes[axis][0], slopes[axis][1 + axis]
        speed = half * primitive[1 + axis]
        moved[0].addcmul_(speed, height_slope).addcmul_(primitive[0].mul(half), normal_slope)
        moved[1].addcmul_(speed, slopes[axis][1])
        moved[2].addcmul_(speed, slopes[axis][2])
        moved[1 + axis].addcmul_(half, height_slope, value=basin.gravity)
    return moved


def _face_states(primitive: Tensor, slope: Tensor, axis: int) -> Sides:
    """Height and velocities on both sides of each face of the basin's cells along an axis."""
    other = 3 - axis
    inner, tilt = (field.narrow(other, 1, field.shape[other] - 2) for field in (primitive, slope))
    along, faces = axis + 2, inner.shape[axis + 2] - 1
    left = torch.add(inner.narrow(along, 0, faces), tilt.narrow(along, 0, faces), alpha=0.5)
    right = torch.add(inner.narrow(along, 1, faces), tilt.narrow(along, 1, faces), alpha=-0.5)
    left[0].clamp_min_(DRY)
    right[0].clamp_min_(DRY)
    return left, right


def _face_flux(left: Tensor, right: Tensor, axis: int, gravity: float) -> Tensor:
    """HLL flux of height and normal momentum with Einfeldt's speeds; a contact carries the other momentum.

    With s- = min(0, u_l - c_l, u - c), s+ = max(0, u_r + c_r, u + c) at Roe's mean u and c:
    F = (s+ F_l - s- F_r + s- s+ (q_r - q_l)) / (s+ - s-); the transverse velocity comes from upstream.
    """
    normal, transverse = 1 + axis, 2 - axis
    h_l, u_l, h_r, u_r = left[0], left[normal], right[0], right[normal]
    # Memory is reused under a new name as soon as it is free: new pages cost as much as the arithmetic.
    root_l, root_r = h_l.sqrt(), h_r.sqrt()
    total = root_l + root_r
    mean = (root_l * u_l).addcmul_(root_r, u_r).div_(total)
    celerity = torch.add(h_l, h_r, out=total).mul_(0.5 * gravity).sqrt_()
    slowest, fastest = root_l.mul_(-(gravity**0.5)).add_(u_l), root_r.mul_(gravity**0.5).add_(u_r)
    slow = (mean - celerity).clamp_(max=slowest).clamp_(max=0.0)
    fast = mean.add_(celerity).clamp_(min=fastest).clamp_(min=0.0)
    share_l = torch.div(fast, torch.sub(fast, slow, out=celerity), out=fast)
    spread = slow.mul_(share_l)
    m_l, m_r = torch.mul(h_l, u_l, out=root_l), torch.mul(h_r, u_r, out=root_r)
    flux = torch.empty_like(left)
    mass = torch.lerp(m_r, m_l, share_l, out=flux[0])
    mass.addcmul_(spread, torch.sub(h_r, h_l, out=total))
    push_l = torch.mul(m_l, u_l, out=total).addcmul_(h_l, h_l, value=0.5 * gravity)
    push_r = torch.mul(m_r, u_r, out=flux[transverse]).addcmul_(h_r, h_r, value=0.5 * gravity)
    torch.lerp(push_r, push_l, share_l, out=flux[normal]).addcmul_(spread, m_r.sub_(m_l))
    torch.where(mass > 0, left[transverse], right[transverse], out=flux[transverse]).mul_(mass)
    return flux


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
