"""Fisher-KPP against a refined solution, its exact travelling wave and its linear modes."""

from __future__ import annotations

import math
from itertools import pairwise

import torch

from spectrakan.pde.diffusion_reaction1d import DiffusionReaction1DParameters, sample, solve


def test_order_in_time_on_rough_random_states():
    """The nominal order is four; two is the least that is promised."""
    initial = sample(8, (128,), DiffusionReaction1DParameters(), torch.Generator().manual_seed(0))
    found = [
        solve(initial, [0.01, 1.0], DiffusionReaction1DParameters(max_step=step, rho=4.0))
        for step in (0.04, 0.02, 0.01, 0.00125)
    ]
    errors = [float((frames - found[-1]).abs().max()) for frames in found[:-1]]
    orders = [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    assert min(orders) > 3.0
    assert errors[-1] < 1e-6


def test_space_is_resolved_spectrally():
    def smooth(cells: int) -> torch.Tensor:
        x = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
        return (0.5 + 0.4 * torch.sin(2 * math.pi * x)).reshape(1, cells, 1)

    parameters = DiffusionReaction1DParameters(nu=0.01, rho=5.0)
    # With an odd ratio every coarse centre is a fine one.
    fine = solve(smooth(243), [0.3], parameters)[0, 0, :, 0]
    errors = [
        float(
            (solve(smooth(cells), [0.3], parameters)[0, 0, :, 0] - fine[243 // cells // 2 :: 243 // cells])
            .abs()
            .max()
        )
        for cells in (9, 27)
    ]
    assert errors[1] < 1e-9 < errors[0]


def test_the_exact_travelling_wave_keeps_its_shape_and_speed():
    """Ablowitz and Zeppetella: u = (1 + exp((x - c t) / sqrt(6 nu / rho)))^-2 with c = 5 sqrt(nu rho / 6)."""
    nu, rho, cells, final = 1.6e-4, 10.0, 1024, 1.0
    width, speed = math.sqrt(6 * nu / rho), 5 * math.sqrt(nu * rho / 6)
    x = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells

    def two_fronts(time: float) -> torch.Tensor:
        reach = (x - 0.5).abs() - 0.2 - speed * time
        return (1 + (reach / width).exp()) ** -2

    parameters = DiffusionReaction1DParameters(nu=nu, rho=rho)
    found = solve(two_fronts(0.0).reshape(1, cells, 1), [0.0, final], parameters)[0, :, :, 0]
    assert float((found[1] - two_fronts(final)).abs().max()) < 1e-5
    measured = float((found[1] - found[0]).mean()) / (2 * final)
    assert abs(measured / speed - 1) < 1e-5


def test_small_waves_follow_linear_theory():
    """Around 0 a mode k grows at rho - nu k^2."""
    cells, nu, rho = 64, 0.05, 1.0
    x = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    shape = torch.cos(4 * math.pi * x)
    initial = (1e-6 * shape).reshape(1, cells, 1)
    found = solve(initial, [0.5], DiffusionReaction1DParameters(nu=nu, rho=rho))[0, 0, :, 0]
    growth = 2e6 * float((found * shape).mean())
    assert abs(growth / math.exp(0.5 * (rho - nu * (4 * math.pi) ** 2)) - 1) < 1e-4
