"""Observed order of the shallow water solver against exact and refined solutions."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.optimize import brentq
from torch import Tensor

from spectrakan.numerics.resample import block_mean
from spectrakan.pde.shallow_water2d import EQUATION, ShallowWaterParameters, solve

Array = npt.NDArray[np.float64]


def observed_order(errors: list[float], sizes: tuple[int, ...]) -> float:
    """Slope of log error against log cell width."""
    return float(-np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def stoker(x: Array, time: float, left: float, right: float) -> tuple[Array, Array]:
    """Height and velocity after a dam between still waters breaks at x = 0, g = 1: a fan and a bore."""

    def mismatch(height: float) -> float:
        """Velocity behind the rarefaction less that behind the bore."""
        bore = (height - right) * math.sqrt((height + right) / (2 * height * right))
        return 2 * (math.sqrt(left) - math.sqrt(height)) - bore

    middle = brentq(mismatch, right, left, xtol=1e-14)
    velocity = 2 * (math.sqrt(left) - math.sqrt(middle))
    bore_speed = middle * velocity / (middle - right)
    ray = x / time
    fan_height = (2 * math.sqrt(left) - ray) ** 2 / 9
    fan_velocity = 2 * (math.sqrt(left) + ray) / 3
    places = [ray < -math.sqrt(left), ray < velocity - math.sqrt(middle), ray < bore_speed]
    height = np.select(places, [np.full_like(x, left), fan_height, np.full_like(x, middle)], right)
    speed = np.select(places, [np.zeros_like(x), fan_velocity, np.full_like(x, velocity)], 0.0)
    return height, speed


def dam_break_error(size: int, left: float, right: float, time: float, axis: int) -> float:
    """Mean absolute error of height and velocity along one axis, over the mean height."""
    x = EQUATION.grid((size, 4)).coordinates[0]
    height = torch.where(x < 0, left, right * torch.ones_like(x))[:, None].expand(size, 4)
    start = torch.stack([height, 0 * height, 0 * height], dim=-1)[None]
    start = start if axis == 0 else start.transpose(1, 2)
    later = solve(start, (time,), ShallowWaterParameters())[0, 0]
    later = later[:, 1] if axis == 0 else later[1]
    exact_height, exact_speed = stoker(x.numpy(), time, left, right)
    wrong = np.abs(later[:, 0].numpy() - exact_height) + np.abs(later[:, 1 + axis].numpy() - exact_speed)
    return float(wrong.mean() / exact_height.mean())


@pytest.mark.parametrize("axis", [0, 1])
def test_dam_break_converges_to_stokers_solution(axis: int):
    sizes = (64, 128, 256, 512)
    errors = [dam_break_error(size, 2.0, 1.0, 1.0, axis) for size in sizes]
    assert errors[0] < 0.02
    assert observed_order(errors, sizes) >= 0.85


def test_dam_break_through_the_sonic_point():
    """A tall dam: the rarefaction turns supercritical, where a scheme without entropy would leave a jump."""
    sizes = (64, 128, 256, 512)
    errors = [dam_break_error(size, 2.0, 0.02, 0.6, 0) for size in sizes]
    assert observed_order(errors, sizes) >= 0.7


def smooth_start(size: int, finest: int) -> Tensor:
    """A periodic swell, as cell averages."""
    x, y = (2 * math.pi * axis / 5.0 for axis in EQUATION.grid((finest, finest)).coordinates)
    east, north = x[:, None], y[None, :]
    height = 1.0 + 0.1 * torch.sin(east + north) - 0.2 * torch.cos(east) * torch.cos(north)
    momentum_x, momentum_y = height * 0.3 * torch.cos(north), height * (0.2 + 0.1 * torch.sin(east))
    fields = torch.stack([height, momentum_x, momentum_y], dim=-1)
    for axis in (0, 1):
        fields = block_mean(fields, axis, finest // size)
    return torch.cat([fields[..., :1], fields[..., 1:] / fields[..., :1]], dim=-1)[None]


def test_smooth_flow_is_second_order():
    finest, sizes = 256, (16, 32, 64)
    periodic = ShallowWaterParameters(boundary="periodic")
    refined = solve(smooth_start(finest, finest), (0.6,), periodic)[0, 0]
    errors = []
    for size in sizes:
        found = solve(smooth_start(size, finest), (0.6,), periodic)[0, 0]
        expected = torch.cat([refined[..., :1], refined[..., :1] * refined[..., 1:]], dim=-1)
        for axis in (0, 1):
            expected = block_mean(expected, axis, finest // size)
        conserved = torch.cat([found[..., :1], found[..., :1] * found[..., 1:]], dim=-1)
        errors.append(float((conserved - expected).abs().mean()))
    assert observed_order(errors, sizes) >= 1.8
