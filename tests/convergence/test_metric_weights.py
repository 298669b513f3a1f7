"""With cell volumes the scores converge to integrals over the domain."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spectrakan.fields import Grid
from spectrakan.metrics import evaluate_fields


def globe(rows):
    step = 180.0 / rows
    latitude = torch.linspace(-90 + step / 2, 90 - step / 2, rows, dtype=torch.float64)
    longitude = torch.arange(2 * rows, dtype=torch.float64) * step
    return Grid.latitude_longitude(latitude, longitude)


def order(sizes, errors):
    return -np.polyfit(np.log(sizes), np.log(errors), 1)[0]


def globe_scores(rows, weighted=True):
    grid = globe(rows)
    sine = torch.deg2rad(grid.coordinates[0]).sin()
    error = sine.square()[:, None].expand(grid.shape)[None, None, ..., None]
    target = torch.full_like(error, 2.0)
    return evaluate_fields(target + error, target, grid=grid if weighted else None)


def test_latitude_weights_converge_to_the_sphere():
    sizes = [8, 16, 32, 64]
    found = [globe_scores(rows) for rows in sizes]
    # Over the sphere sin(latitude) is uniform on (-1, 1): <s⁴> = 1/5, <s²> = 1/3.
    for name, value in (("rmse", math.sqrt(0.2)), ("crmse", 1 / 3), ("relative_l2", math.sqrt(0.05))):
        errors = [abs(scores[name] - value) for scores in found]
        assert order(sizes, errors) == pytest.approx(2.0, abs=0.1), name
        assert errors[-1] < 1e-3, name


def test_without_weights_the_poles_count_too_much():
    # Uniform in latitude: <sin⁴> = 3/8 instead of 1/5.
    assert globe_scores(64, weighted=False)["rmse"] == pytest.approx(math.sqrt(3 / 8), rel=1e-3)


def test_stretched_cells_converge_to_the_integral():
    sizes, errors = [16, 32, 64, 128], []
    for size in sizes:
        edges = torch.linspace(0, 1, size + 1, dtype=torch.float64) ** 2
        grid = Grid.from_edges([edges])
        x = grid.coordinates[0].reshape(1, 1, -1, 1)
        rmse = evaluate_fields(torch.exp(x), torch.zeros_like(x), grid=grid)["rmse"]
        errors.append(abs(rmse - math.sqrt((math.e**2 - 1) / 2)))
    assert order(sizes, errors) == pytest.approx(2.0, abs=0.1)


def test_a_grid_of_equal_cells_changes_nothing():
    pair = [torch.randn(2, 2, 12, 9, 2, generator=torch.Generator().manual_seed(s)) for s in (0, 1)]
    grid = Grid.uniform((12, 9), bounds=((-2.5, 2.5), (0.0, 1.0)))
    assert evaluate_fields(*pair, grid=grid) == pytest.approx(evaluate_fields(*pair), rel=1e-12, nan_ok=True)
