"""Smooth fields: through their values, exact for cubics, fourth order, and never outside their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline

from benchmarks.attention_quadrature import along_axes, spline_axis, spline_field
from spectrakan.errors import ShapeError
from spectrakan.nn.axis import Axis, uniform_axis
from spectrakan.numerics.bspline import evaluate_basis


def slopes_of_basis(points: torch.Tensor, knots: torch.Tensor) -> torch.Tensor:
    """Derivatives of all cubic basis functions, `(points, functions)`, by differentiation of the basis itself."""
    x = points.clone().requires_grad_()
    basis = evaluate_basis(x[None], knots[None], 3)[0]
    columns = [torch.autograd.grad(each.sum(), x, retain_graph=True)[0] for each in basis]
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("periodic", [False, True])
def test_a_line_of_values_becomes_scipy_s_spline(periodic, generator):
    values = torch.randn(1, 11, dtype=torch.float64, generator=generator)
    axis = uniform_axis(11, periodic)
    points = torch.linspace(0.001, 0.999, 301, dtype=torch.float64)
    x, y = axis.centres.numpy(), values[0].numpy()
    if periodic:
        other = CubicSpline(np.append(x, x[0] + 1), np.append(y, y[0]), bc_type="periodic")
        expected = other(np.where(points < x[0], points + 1, points))
    else:
        expected = CubicSpline(x, y, bc_type="not-a-knot")(points.numpy())
    assert np.allclose(spline_field(values, [axis]).at([points])[0].numpy(), expected, atol=1e-10)


def test_a_smooth_function_is_met_to_fourth_order():
    points = [torch.linspace(0.01, 0.99, 40, dtype=torch.float64)] * 2

    def wave(x, y):
        return torch.sin(2 * math.pi * x)[:, None] * torch.exp(y)[None]

    errors = []
    for cells in (16, 32, 64):
        axes = [uniform_axis(cells, True), uniform_axis(cells, False)]
        field = spline_field(wave(*[axis.centres for axis in axes])[None], axes)
        errors.append(float((field.at(points)[0] - wave(*points)).abs().max()))
    assert all(math.log2(errors[i] / errors[i + 1]) > 3.5 for i in range(2))


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("sizes", [(9,), (7, 6), (5, 4, 6)], ids=str)
def test_no_value_or_slope_leaves_its_bound(sizes, periodic, generator):
    axes = [uniform_axis(size, periodic) for size in sizes]
    field = spline_field(torch.randn(3, *sizes, dtype=torch.float64, generator=generator), axes)
    points = [
        torch.linspace(1e-9, 1 - 1e-9, {1: 2000, 2: 120, 3: 30}[len(sizes)], dtype=torch.float64) for _ in sizes
    ]
    centre = torch.tensor([0.3, -0.2, 1.0], dtype=torch.float64)
    values = field.at(points).flatten(1)
    assert torch.all(values.amax(1) <= field.largest().flatten(1).amax(1) + 1e-12)
    assert values.norm(dim=0).max() <= field.largest_norm().max() + 1e-12
    assert (values - centre[:, None]).norm(dim=0).max() <= field.largest_norm(centre).max() + 1e-12
    columns = []
    for place in range(len(sizes)):
        bases = [
            slopes_of_basis(p, axis.knots) if other == place else axis.basis(p)
            for other, (axis, p) in enumerate(zip(field.axes, points, strict=True))
        ]
        columns.append(along_axes(field.control, bases).flatten(1))
    slopes = torch.stack(columns, dim=-1).transpose(0, 1)  # (points, channel, axis)
    found = torch.linalg.matrix_norm(slopes, 2).max()
    assert 0.1 * field.largest_slope().max() < found <= field.largest_slope().max() * (1 + 1e-12)


def test_gauss_points_integrate_the_spline_exactly(generator):
    for periodic in (False, True):
        axis = uniform_axis(8, periodic)
        values = torch.randn(1, 8, dtype=torch.float64, generator=generator)
        points, weights = spline_axis(axis).gauss_points(2)
        fine, fine_weights = spline_axis(axis).gauss_points(9)
        field = spline_field(values, [axis])
        assert torch.allclose(weights.sum(), torch.ones((), dtype=torch.float64))
        assert torch.allclose(field.at([points]) @ weights, field.at([fine]) @ fine_weights, atol=1e-13)
        if periodic:  # the mean of a periodic spline on even knots is the mean of its values
            assert torch.allclose(field.at([points]) @ weights, values.mean(1), atol=1e-13)


def test_other_than_equal_cells_are_refused():
    edges = torch.tensor([0.0, 0.1, 0.3, 0.6, 1.0], dtype=torch.float64)
    axis = Axis((edges[1:] + edges[:-1]) / 2, edges, edges.diff(), periodic=False, uniform=False)
    with pytest.raises(ShapeError, match="equal cells"):
        spline_axis(axis)
