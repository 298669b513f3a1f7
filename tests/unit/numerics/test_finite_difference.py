"""Differences are exact for polynomials of their degree and fourth order for waves."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.errors import ShapeError
from spectrakan.numerics.finite_difference import (
    differentiate_cells,
    differentiate_frames,
    differentiation_matrix,
)


def test_quartics_are_differentiated_exactly_on_any_spacing():
    points = torch.tensor([0.0, 0.3, 0.5, 1.1, 1.2, 2.0, 2.05], dtype=torch.float64)
    matrix = differentiation_matrix(points)
    torch.testing.assert_close(matrix @ points**4, 4 * points**3, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(matrix @ torch.ones_like(points), torch.zeros(7, dtype=torch.float64))


def test_two_frames_give_their_difference_quotient():
    values = torch.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=torch.float64)
    found = differentiate_frames(values, [0.0, 0.5], 0)
    assert found.tolist() == [[6.0, 12.0], [6.0, 12.0]]


@pytest.mark.parametrize("periodic", [True, False])
def test_waves_are_differentiated_at_fourth_order_along_any_axis(periodic):
    errors = []
    for cells in (32, 64):
        x = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
        wave = torch.sin(2 * math.pi * x)[None, :, None].expand(2, cells, 3)
        slope = differentiate_cells(wave, 1, 1.0 / cells, periodic=periodic)
        exact = 2 * math.pi * torch.cos(2 * math.pi * x)[None, :, None]
        errors.append(float((slope - exact).abs().max()))
    assert math.log2(errors[0] / errors[1]) > 3.8


def test_frames_and_times_must_agree():
    with pytest.raises(ShapeError, match="one frame for each of 3 times"):
        differentiate_frames(torch.zeros(2), [0.0, 1.0, 2.0], 0)
    with pytest.raises(ShapeError, match="at least 2 points"):
        differentiation_matrix(torch.zeros(1))
