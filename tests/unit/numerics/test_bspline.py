"""B-splines against scipy's and against their own laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from spectrakan.numerics import bspline


def random_knots(inputs: int, count: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    gaps = 0.05 + torch.rand(inputs, count, dtype=torch.float64, generator=generator)
    return gaps.cumsum(1) - 2.0


@pytest.mark.parametrize("order", range(1, 6))
def test_basis_and_slope_equal_scipys(order):
    knots = random_knots(2, 14, seed=order)
    low, high = float(knots.min()) - 1, float(knots.max()) + 1
    x = torch.linspace(low, high, 400, dtype=torch.float64).expand(2, -1)
    basis = bspline.evaluate_basis(x, knots, order)
    interval = bspline.find_interval(x, knots)
    plain, moved = (
        bspline.local_basis(x, knots, interval, order, beyond=torch.full_like(x, step)) for step in (0.0, 1.0)
    )
    inside = (x >= knots[:, :1]) & (x < knots[:, -1:])
    slope = bspline.scatter_basis((moved - plain) * inside[:, None], interval, 14 - order - 1)
    for i in range(2):
        for r in range(14 - order - 1):
            peer = BSpline.basis_element(knots[i, r : r + order + 2].numpy(), extrapolate=False)
            assert np.abs(basis[i, r].numpy() - np.nan_to_num(peer(x[i].numpy()))).max() < 1e-12
            expected = np.nan_to_num(peer.derivative()(x[i].numpy()))
            assert np.abs(slope[i, r].numpy() - expected).max() < 1e-11 * max(1, np.abs(expected).max())


@given(order=st.integers(1, 5), seed=st.integers(0, 1000), share=st.floats(0, 1))
def test_basis_functions_sum_to_one_inside_and_are_never_negative(order, seed, share):
    knots = random_knots(1, 2 * order + 6, seed)
    inner = knots[0, order], knots[0, -order - 1]
    x = (inner[0] + share * (inner[1] - inner[0])).view(1, 1).clamp(max=float(inner[1]) - 1e-12)
    basis = bspline.evaluate_basis(x, knots, order)
    assert abs(float(basis.sum()) - 1) < 1e-12
    assert float(basis.min()) >= 0


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_best_spline_approaches_a_smooth_function_at_order_k_plus_one(order):
    errors = []
    for intervals in (8, 16, 32):
        knots = torch.arange(-order, intervals + order + 1, dtype=torch.float64)[None] / intervals
        x = torch.linspace(0, 1 - 1e-9, 2000, dtype=torch.float64)[None]
        basis = bspline.evaluate_basis(x, knots, order)[0]
        target = torch.sin(5 * x[0]) + x[0] ** 2
        fit = torch.linalg.lstsq(basis.T, target[:, None]).solution
        errors.append(float((basis.T @ fit - target[:, None]).abs().max()))
    slope = np.polyfit(np.log([8, 16, 32]), np.log(errors), 1)[0]
    assert -slope > order + 1 - 0.25


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_gradients_with_respect_to_x_and_knots_are_exact(order):
    knots = random_knots(2, 3 * order + 3, seed=5).requires_grad_()
    middle = (knots[:, order : order + 3] + knots[:, order + 1 : order + 4]).detach() / 2
    x = (middle + 0.01).requires_grad_()
    interval = bspline.find_interval(x, knots)

    def all_local(x, knots):
        return bspline.local_basis(x, knots, interval, order, beyond=0.3 * x)

    assert torch.autograd.gradcheck(all_local, (x, knots))
