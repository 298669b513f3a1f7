"""Compressible flow against exact solutions: shock tube, smooth waves, viscous decay of sound."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from spectrakan.pde.cns1d import CNS1DParameters, solve

GAMMA = 1.4
LEFT, RIGHT = (1.0, 0.0, 1.0), (0.125, 0.0, 0.1)


def pressure_function(p: float, state: tuple[float, float, float]) -> tuple[float, float]:
    """Velocity change across the wave that links a state to pressure p, and the density behind it."""
    density, _, pressure = state
    sound = math.sqrt(GAMMA * pressure / density)
    if p > pressure:
        a, b = 2 / ((GAMMA + 1) * density), (GAMMA - 1) / (GAMMA + 1) * pressure
        ratio = p / pressure
        behind = density * (ratio * (GAMMA + 1) + GAMMA - 1) / (ratio * (GAMMA - 1) + GAMMA + 1)
        return (p - pressure) * math.sqrt(a / (p + b)), behind
    change = 2 * sound / (GAMMA - 1) * ((p / pressure) ** ((GAMMA - 1) / (2 * GAMMA)) - 1)
    return change, density * (p / pressure) ** (1 / GAMMA)


def exact_riemann(speed: np.ndarray) -> np.ndarray:
    """The solution of the Riemann problem LEFT | RIGHT on rays x/t, written for left fan and right shock."""
    u_l, u_r = LEFT[1], RIGHT[1]
    star_p = brentq(lambda p: pressure_function(p, LEFT)[0] + pressure_function(p, RIGHT)[0] + u_r - u_l, 1e-6, 10.0)
    fall, density_l = pressure_function(star_p, LEFT)
    _, density_r = pressure_function(star_p, RIGHT)
    star_u = u_l - fall
    sound_l = math.sqrt(GAMMA * LEFT[2] / LEFT[0])
    sound_star = math.sqrt(GAMMA * star_p / density_l)
    sound_r = math.sqrt(GAMMA * RIGHT[2] / RIGHT[0])
    shock = u_r + sound_r * math.sqrt((GAMMA + 1) / (2 * GAMMA) * star_p / RIGHT[2] + (GAMMA - 1) / (2 * GAMMA))
    fan_u = 2 / (GAMMA + 1) * (sound_l + (GAMMA - 1) / 2 * u_l + speed)
    fan_c = 2 / (GAMMA + 1) * (sound_l + (GAMMA - 1) / 2 * (u_l - speed))
    fan_density = LEFT[0] * (np.maximum(fan_c, 1e-9) / sound_l) ** (2 / (GAMMA - 1))
    fan = np.stack([fan_density, fan_u, LEFT[2] * (fan_density / LEFT[0]) ** GAMMA], -1)
    result = np.broadcast_to(np.array(RIGHT), (*speed.shape, 3)).copy()
    for until, state in [
        (shock, (density_r, star_u, star_p)),
        (star_u, (density_l, star_u, star_p)),
        (star_u - sound_star, None),
        (u_l - sound_l, LEFT),
    ]:
        inside = speed < until
        result[inside] = fan[inside] if state is None else state
    return result


def orders(errors: list[float]) -> list[float]:
    return [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]


def test_the_exact_solver_knows_the_published_star_state_of_sod():
    middle = exact_riemann(np.array([0.5, 1.2]))
    assert middle[0] == pytest.approx([0.42632, 0.92745, 0.30313], abs=1e-5)
    assert middle[1] == pytest.approx([0.26557, 0.92745, 0.30313], abs=1e-5)


def test_sod_tube_converges_in_the_mean_to_the_exact_solution():
    parameters = CNS1DParameters(eta=0.0, zeta=0.0, gamma=GAMMA, boundary="outflow", min_cells=1)
    errors = []
    for cells in (100, 200, 400):
        x = np.linspace(-1, 1, cells + 1)
        centres = (x[1:] + x[:-1]) / 2
        initial = torch.tensor(np.where(centres[:, None] < 0, LEFT, RIGHT))[None]
        found = solve(initial, [0.4], parameters)[0, 0].numpy()
        errors.append(float(np.abs(found - exact_riemann(centres / 0.4)).mean(0).sum()))
    assert min(orders(errors)) >= 0.7
    assert errors[-1] < 0.01


def cell_averages(function, cells: int) -> torch.Tensor:
    """Averages over cells of (-1, 1) by three-point Gauss quadrature."""
    edges = torch.linspace(-1, 1, cells + 1, dtype=torch.float64)
    centre, half = (edges[1:] + edges[:-1]) / 2, 1.0 / cells
    offset = math.sqrt(0.6) * half
    return (5 * function(centre - offset) + 8 * function(centre) + 5 * function(centre + offset)) / 18


def simple_wave(x: torch.Tensor, time: float) -> torch.Tensor:
    """A right-running isentropic simple wave before it breaks: v = w(x - (v + c) t), c - c0 = (g-1)/2 v."""
    gamma, sound = 5.0 / 3.0, 1.0
    velocity = 0.05 * torch.sin(math.pi * x)
    for _ in range(60):
        velocity = 0.05 * torch.sin(math.pi * (x - (sound + (gamma + 1) / 2 * velocity) * time))
    local = sound + (gamma - 1) / 2 * velocity
    density = local ** (2 / (gamma - 1))
    pressure = density**gamma / gamma
    return torch.stack([density, density * velocity, pressure / (gamma - 1) + density * velocity**2 / 2], -1)


def conserved(states: torch.Tensor) -> torch.Tensor:
    density, velocity, pressure = states.unbind(-1)
    return torch.stack([density, density * velocity, 1.5 * pressure + 0.5 * density * velocity**2], -1)


def primitive(states: torch.Tensor) -> torch.Tensor:
    density, momentum, energy = states.unbind(-1)
    velocity = momentum / density
    return torch.stack([density, velocity, (energy - 0.5 * momentum * velocity) / 1.5], -1)


def test_a_smooth_nonlinear_wave_converges_at_second_order():
    parameters = CNS1DParameters(eta=0.0, zeta=0.0, min_cells=1)
    errors = []
    for cells in (64, 128, 256):
        initial = primitive(cell_averages(lambda x: simple_wave(x, 0.0), cells))[None]
        found = conserved(solve(initial, [1.0], parameters))[0, 0]
        exact = cell_averages(lambda x: simple_wave(x, 1.0), cells)
        errors.append(float((found - exact).abs().mean()))
    assert min(orders(errors)) >= 1.8


@pytest.mark.parametrize("viscosity", ["dynamic", "density_weighted"])
def test_viscous_flow_converges_at_second_order(viscosity):
    """Against itself on ever finer grids, at a viscosity that resolves all waves."""
    parameters = CNS1DParameters(eta=0.1, zeta=0.1, min_cells=1, viscosity=viscosity)
    x = [torch.linspace(-1, 1, n + 1, dtype=torch.float64)[1:] - 1 / n for n in (128, 256, 512, 1024)]
    found = []
    for points in x:
        state = torch.stack(
            [
                2 + 0.5 * torch.sin(math.pi * points),
                0.3 * torch.cos(2 * math.pi * points),
                10 + torch.sin(math.pi * points + 1),
            ],
            -1,
        )
        frames = conserved(solve(state[None], [0.1], parameters))[0, 0]
        found.append(frames.reshape(128, -1, 3).mean(1))
    differences = [float((fine - coarse).abs().mean()) for coarse, fine in pairwise(found)]
    assert min(orders(differences)) >= 1.8


@pytest.mark.parametrize("viscosity", ["dynamic", "density_weighted"])
def test_sound_decays_as_linear_theory_says(viscosity):
    """Standing wave: v ~ exp(-a t) cos(w t) with a = mu k^2 / (2 rho), w^2 = c^2 k^2 - a^2."""
    eta, zeta, density, wave = 0.03, 0.02, 2.0, 2 * math.pi
    parameters = CNS1DParameters(eta=eta, zeta=zeta, viscosity=viscosity, min_cells=1)
    mu = 4 * eta / 3 + zeta
    damping = mu * wave**2 / 2 / (density if viscosity == "dynamic" else 1.0)
    sound = 1.5
    frequency = math.sqrt((sound * wave) ** 2 - damping**2)
    cells = 128
    x = torch.linspace(-1, 1, cells + 1, dtype=torch.float64)[1:] - 1 / cells
    pressure = sound**2 * density * 0.6
    shape = torch.sin(wave * x)
    initial = torch.stack([torch.full_like(x, density), 1e-5 * shape, torch.full_like(x, pressure)], -1)[None]
    times = [0.0, 0.2, 0.5, 1.0]
    frames = solve(initial, times, parameters)[0, :, :, 1]
    amplitude = (frames * shape).mean(-1) * 2e5
    t = torch.tensor(times, dtype=torch.float64)
    theory = (-damping * t).exp() * ((frequency * t).cos() - damping / frequency * (frequency * t).sin())
    torch.testing.assert_close(amplitude, theory, rtol=0, atol=0.008)
