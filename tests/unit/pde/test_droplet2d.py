from __future__ import annotations

import numpy as np
import pytest
import torch

from spectrakan.errors import ConfigError, SpectraKANError
from spectrakan.pde.droplet2d import EQUATION, DropletParameters, draw_droplet, solve

PARAMETERS = DropletParameters()
CENTRED = DropletParameters(centre=(0.5, 0.5))


def test_droplets_have_the_papers_shape_and_ranges(generator: torch.Generator):
    """Fit log(rho - 1) = log h - |x - c|²/w, a plane in (1, x, y, x² + y²), to every sample."""
    start = draw_droplet(300, (32, 32), PARAMETERS, generator)
    x, y = (axis.numpy() for axis in EQUATION.grid().coordinates)
    east, north = np.meshgrid(x, y, indexing="ij")
    fitted = []
    for rho in start[..., 0].numpy():
        seen = rho - 1 > 1e-6
        columns = [np.ones_like(east), east, north, east**2 + north**2]
        design = np.stack([column[seen] for column in columns], axis=1)
        (a, b, c, d), *_ = np.linalg.lstsq(design, np.log(rho[seen] - 1), rcond=None)
        width = -1 / d
        centre = np.array([b, c]) * width / 2
        fitted.append([np.exp(a + (centre**2).sum() / width), width, *centre])
    values = np.array(fitted)
    lows, highs = np.array([1.5, 0.002, 0.4, 0.4]), np.array([2.5, 0.008, 0.6, 0.6])
    assert (values > lows - 1e-6).all()
    assert (values < highs + 1e-6).all()
    shares = (values - lows) / (highs - lows)
    np.testing.assert_allclose(shares.mean(axis=0), 0.5, atol=0.06)
    np.testing.assert_allclose(shares.std(axis=0), 12**-0.5, atol=0.04)
    assert float(start[..., 1:].abs().max()) == 0.0


def test_frames_are_the_first_step_and_then_every_hundredth():
    assert len(EQUATION.times) == 101
    np.testing.assert_allclose(EQUATION.times, [0.002, *(0.01 * np.arange(1, 101))], atol=1e-15)


def test_first_frame_is_one_step_by_hand(generator: torch.Generator):
    """The scheme written out with ghost cells around still water: dt / dx = 0.064."""
    start = draw_droplet(1, (32, 32), PARAMETERS, generator)
    first = solve(start, (0.002,), PARAMETERS)[0, 0].numpy()
    rho = np.pad(start[0, ..., 0].numpy(), 1, mode="edge")
    pressure = 0.5 * 9.81 * rho**2
    mass = (rho[2:, 1:-1] + rho[:-2, 1:-1] + rho[1:-1, 2:] + rho[1:-1, :-2]) / 4
    momentum_x = -0.032 * (pressure[2:, 1:-1] - pressure[:-2, 1:-1])
    momentum_y = -0.032 * (pressure[1:-1, 2:] - pressure[1:-1, :-2])
    expected = np.stack([mass, momentum_x / mass, momentum_y / mass], axis=-1)
    np.testing.assert_allclose(first, expected, atol=1e-13)


def test_frames_are_whole_numbers_of_steps(generator: torch.Generator):
    """Five steps of 0.002 make a frame, so asking for all of them changes nothing."""
    start = draw_droplet(2, (32, 32), PARAMETERS, generator)
    frames = solve(start, EQUATION.times[:4], PARAMETERS)
    every = solve(start, tuple(0.002 * step for step in range(1, 16)), PARAMETERS)
    torch.testing.assert_close(frames, every[:, [0, 4, 9, 14]], rtol=1e-12, atol=1e-13)


def test_mass_is_kept_between_walls(generator: torch.Generator):
    frames = solve(draw_droplet(4, (32, 24), PARAMETERS, generator), EQUATION.times, PARAMETERS)
    mass = frames[..., 0].sum(dim=(2, 3))
    assert float((mass / mass[:, :1] - 1).abs().max()) < 1e-12


def test_a_centred_droplet_stays_symmetric(generator: torch.Generator):
    frames = solve(draw_droplet(2, (32, 32), CENTRED, generator), EQUATION.times, CENTRED)
    rho, east, north = frames.unbind(-1)
    torch.testing.assert_close(rho, rho.flip(2), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(rho, rho.transpose(2, 3), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(east, -east.flip(2), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(north, north.flip(2), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(east, north.transpose(2, 3), rtol=1e-9, atol=1e-12)


def test_a_mirrored_start_gives_a_mirrored_flow(generator: torch.Generator):
    start = draw_droplet(2, (32, 32), PARAMETERS, generator)
    times = (0.1, 0.4)  # long enough to meet the walls
    sign = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)
    frames = solve(start, times, PARAMETERS)
    mirrored = solve(start.flip(2) * sign, times, PARAMETERS)
    torch.testing.assert_close(mirrored.flip(3) * sign, frames, rtol=1e-10, atol=1e-12)


def test_water_between_walls_comes_to_rest(generator: torch.Generator):
    frames = solve(draw_droplet(1, (32, 32), PARAMETERS, generator), (0.1, 5.0), PARAMETERS)
    assert float(frames[0, 1, ..., 1:].abs().max()) < 1e-3 * float(frames[0, 0, ..., 1:].abs().max())


def test_droplets_stay_below_the_stability_limit():
    """The default gravity is allowed: the tallest, widest droplet crosses at most 0.4 cells a step."""
    tallest = DropletParameters(amplitude=(2.5, 2.5), width=(0.008, 0.008))
    start = draw_droplet(1, (32, 32), tallest, torch.Generator().manual_seed(0))
    times = (0.0, *(0.002 * step for step in range(1, 50)))
    frames = solve(start, times, tallest)
    celerity = (9.81 * frames[..., 0]).sqrt()
    courant = (frames[..., 1:].abs().amax(-1) + celerity) * 0.064
    assert 0.3 < float(courant.max()) < 0.4


def test_mistakes_are_named(generator: torch.Generator):
    start = draw_droplet(1, (32, 32), PARAMETERS, generator)
    with pytest.raises(SpectraKANError, match=r"at most 0\.5 cells a step"):
        solve(start, (0.002, 0.01), DropletParameters(gravity=40.0))
    with pytest.raises(ConfigError, match="never decrease"):
        solve(start, (0.1, 0.05), PARAMETERS)
    with pytest.raises(ConfigError, match="width must be a range"):
        DropletParameters(width=(0.0, 0.1))
