from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spectrakan.config import build_settings
from spectrakan.errors import ConfigError, ShapeError, SpectraKANError
from spectrakan.pde.shallow_water2d import ShallowWaterParameters, draw_dam, solve

PARAMETERS = ShallowWaterParameters()
WALLS = ShallowWaterParameters(boundary="wall")


@settings(max_examples=15, deadline=None)
@given(height=st.floats(0.2, 50.0), gravity=st.floats(0.1, 20.0), boundary=st.sampled_from(["outflow", "wall"]))
def test_any_lake_stays_at_rest(height: float, gravity: float, boundary: str):
    rest = torch.zeros(1, 9, 7, 3, dtype=torch.float64)
    rest[..., 0] = height
    chosen = build_settings(ShallowWaterParameters, {"boundary": boundary, "gravity": gravity})
    later = solve(rest, (0.5, 3.0), chosen)
    assert float((later[..., 0] - height).abs().max()) < 1e-12 * height
    assert float(later[..., 1:].abs().max()) < 1e-12 * math.sqrt(gravity * height) * 10


@pytest.mark.parametrize("boundary", ["wall", "periodic"])
def test_mass_is_kept_and_energy_never_grows(boundary: str, generator: torch.Generator):
    chosen = build_settings(ShallowWaterParameters, {"boundary": boundary})
    start = draw_dam(3, (32, 24), PARAMETERS, generator)
    times = tuple(0.5 * frame for frame in range(12))  # long enough for waves to meet the sides
    frames = solve(start, times, chosen)
    height, speed = frames[..., 0], frames[..., 1:]
    mass = height.sum(dim=(2, 3))
    assert float((mass / mass[:, :1] - 1).abs().max()) < 1e-12
    energy = (0.5 * height * speed.square().sum(-1) + 0.5 * height**2).sum(dim=(2, 3))
    assert bool((energy.diff(dim=1) <= 1e-12 * energy[:, :1]).all())
    assert float((energy[:, 0] - energy[:, -1]).min()) > 0  # the bores dissipate


def test_periodic_sides_keep_momentum(generator: torch.Generator):
    start = draw_dam(2, (24, 24), PARAMETERS, generator)
    start[..., 1], start[..., 2] = 0.3, -0.2
    frames = solve(start, (0.0, 1.0, 3.0), ShallowWaterParameters(boundary="periodic"))
    momentum = (frames[..., :1] * frames[..., 1:]).sum(dim=(2, 3))
    assert float((momentum / momentum[:, :1] - 1).abs().max()) < 1e-12


def test_flow_turns_and_mirrors_with_its_start(generator: torch.Generator):
    start = draw_dam(1, (24, 24), PARAMETERS, generator)
    start[..., 1] = 0.2
    frames = solve(start, (0.4, 0.8), PARAMETERS)
    turned = solve(start.transpose(1, 2)[..., [0, 2, 1]], (0.4, 0.8), PARAMETERS)
    torch.testing.assert_close(turned.transpose(2, 3)[..., [0, 2, 1]], frames, rtol=1e-11, atol=1e-12)
    sign = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    mirrored = solve(start.flip(1) * sign, (0.4, 0.8), PARAMETERS)
    torch.testing.assert_close(mirrored.flip(2) * sign, frames, rtol=1e-11, atol=1e-12)


def test_a_sample_does_not_depend_on_its_neighbours(generator: torch.Generator):
    start = draw_dam(3, (20, 20), PARAMETERS, generator)
    start[1, ..., 0] *= 30.0  # needs far smaller steps than the others
    together = solve(start, (0.0, 0.7), PARAMETERS)
    alone = torch.cat([solve(sample[None], (0.0, 0.7), PARAMETERS) for sample in start])
    torch.testing.assert_close(together, alone, rtol=0, atol=0)
    torch.testing.assert_close(together[:, 0], start)


def test_a_uniform_stream_passes_open_sides():
    stream = torch.tensor([2.0, 0.7, -0.4], dtype=torch.float64).expand(1, 12, 10, 3)
    torch.testing.assert_close(solve(stream, (2.0,), PARAMETERS)[:, 0], stream, rtol=1e-13, atol=1e-13)


def test_waves_leave_through_open_sides(generator: torch.Generator):
    start = draw_dam(1, (32, 32), PARAMETERS, generator)
    left = solve(start, (12.0,), PARAMETERS)[0, 0]
    assert float((left[..., 0] - 1).abs().max()) < 0.02
    assert float(left[..., 1:].abs().max()) < 0.02


def test_no_two_dams_are_equal(generator: torch.Generator):
    assert _count_distinct(draw_dam(1000, (64, 64), PARAMETERS, generator)) == 1000


def test_dams_hold_the_water_they_should():
    """Volume over the outer level is pi R² (inner height - 1) at every resolution, to rounding."""
    volumes = []
    for size in (10, 33, 64):
        dam = draw_dam(50, (size, size), PARAMETERS, torch.Generator().manual_seed(1))
        volumes.append((dam[..., 0] - 1).sum(dim=(1, 2)) * (5.0 / size) ** 2)
    torch.testing.assert_close(volumes[0], volumes[1], rtol=1e-11, atol=0)
    torch.testing.assert_close(volumes[0], volumes[2], rtol=1e-11, atol=0)
    assert math.pi * 0.3**2 * 0.5 < float(volumes[0].min())
    assert float(volumes[0].max()) < math.pi * 0.7**2 * 1.5


def test_mistakes_are_named(generator: torch.Generator):
    start = draw_dam(1, (8, 8), PARAMETERS, generator)
    with pytest.raises(ShapeError, match="height, velocity_x, velocity_y"):
        solve(start[..., :2], (0.1,), PARAMETERS)
    with pytest.raises(ConfigError, match="under water"):
        solve(start * 0.0, (0.1,), PARAMETERS)
    with pytest.raises(SpectraKANError, match="stable time step"):
        solve(start * math.inf, (0.1,), PARAMETERS)
    with pytest.raises(ConfigError, match="times"):
        solve(start, (0.2, 0.1), PARAMETERS)
    with pytest.raises(ConfigError, match="radius must be a range"):
        ShallowWaterParameters(radius=(0.7, 0.3))


def _count_distinct(states: Tensor) -> int:
    return len({state.numpy().tobytes() for state in states})
