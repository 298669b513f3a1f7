"""Observed order of the Darcy solver against exact solutions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from spectrakan.fields import Grid
from spectrakan.pde.darcy2d import DarcyParameters, solve

SIZES = (16, 32, 64, 128)


def observed_order(errors: list[float], sizes: tuple[int, ...] = SIZES) -> float:
    """Slope of log error against log cell width."""
    return float(-np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def cells(size: int) -> tuple[Tensor, Tensor]:
    x, y = Grid.uniform((size, size)).coordinates
    return x[:, None].expand(size, size), y[None, :].expand(size, size)


def relative_error(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


def pressure(coefficient: Tensor, source: Tensor, parameters: DarcyParameters) -> Tensor:
    return solve(torch.stack([coefficient, source], dim=-1)[None], (0.0,), parameters)[0, 0, ..., 0]


def smooth_error(size: int, parameters: DarcyParameters) -> float:
    """u = sin(pi x) sin(2 pi y) in a medium a = 1 + x y / 2 + sin²(pi x) y."""
    x, y = cells(size)
    a = 1 + x * y / 2 + torch.sin(math.pi * x) ** 2 * y
    a_x = y / 2 + math.pi * torch.sin(2 * math.pi * x) * y
    a_y = x / 2 + torch.sin(math.pi * x) ** 2
    u = torch.sin(math.pi * x) * torch.sin(2 * math.pi * y)
    u_x = math.pi * torch.cos(math.pi * x) * torch.sin(2 * math.pi * y)
    u_y = 2 * math.pi * torch.sin(math.pi * x) * torch.cos(2 * math.pi * y)
    source = 5 * math.pi**2 * a * u - a_x * u_x - a_y * u_y
    return relative_error(pressure(a, source, parameters), u)


@pytest.mark.parametrize(
    "parameters", [DarcyParameters(), DarcyParameters(face_mean="arithmetic")], ids=["harmonic", "arithmetic"]
)
def test_smooth_medium_is_second_order(parameters: DarcyParameters):
    assert observed_order([smooth_error(size, parameters) for size in SIZES]) >= 1.9


def test_ghost_cells_half_a_cell_outside_cost_an_order():
    order = observed_order([smooth_error(size, DarcyParameters(wall="ghost")) for size in SIZES])
    assert 0.8 < order < 1.3


def jump_error(size: int, parameters: DarcyParameters) -> float:
    """u = sin(3 pi x) sin(pi y) / a where a jumps tenfold at x = 1/3 and 2/3, inside cells of every grid.

    u and the flux a u_x = 3 pi cos(3 pi x) sin(pi y) are continuous, and -div(a grad u) = 10 pi² sin sin.
    """
    x, y = cells(size)
    a = torch.where((x > 1 / 3) & (x < 2 / 3), torch.full_like(x, 0.1), torch.ones_like(x))
    wave = torch.sin(3 * math.pi * x) * torch.sin(math.pi * y)
    return relative_error(pressure(a, 10 * math.pi**2 * wave, parameters), wave / a)


def test_jumping_coefficient_keeps_first_order():
    assert observed_order([jump_error(size, DarcyParameters()) for size in SIZES]) >= 0.9


def round_inclusion_pressure(size: int) -> Tensor:
    x, y = cells(size)
    tight = (x - 0.47) ** 2 + (y - 0.55) ** 2 < 0.3**2
    a = torch.where(tight, torch.full_like(x, 0.1), torch.ones_like(x))
    return pressure(a, torch.ones_like(a), DarcyParameters())


def test_round_inclusion_converges_to_a_refined_solution():
    """Jump across a curve: means over blocks of a refined solution are what coarse cells should hold."""
    refined = round_inclusion_pressure(256)
    sizes = (8, 16, 32, 64)
    errors = []
    for size in sizes:
        step = 256 // size
        blocks = refined.reshape(size, step, size, step).mean(dim=(1, 3))
        errors.append(relative_error(round_inclusion_pressure(size), blocks))
    assert observed_order(errors, sizes) >= 0.9
