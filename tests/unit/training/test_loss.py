"""Losses against hand-worked numbers."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.fields import Grid
from spectrakan.training.objective import FLOOR, loss


def wave(cells, mode=1, amplitude=1.0):
    x = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    return amplitude * torch.sin(2 * math.pi * mode * x).view(1, 1, cells, 1)


def test_mse_is_the_mean_square_over_cells_frames_and_fields(generator):
    pred, target = torch.randn(2, 3, 4, 5, 2, generator=generator), torch.randn(2, 3, 4, 5, 2, generator=generator)
    assert torch.allclose(loss("mse", pred, target), (pred - target).square().flatten(1).mean(1))


def test_relative_l2_is_taken_per_field_and_frame():
    target = torch.stack([torch.full((1, 2, 8), 2.0), torch.full((1, 2, 8), 10.0)], dim=-1)
    pred = target.clone()
    pred[..., 0] *= 1.5  # half wrong
    pred[:, 1, :, 1] *= 0.9  # a tenth wrong in one of two frames
    assert loss("relative_l2", pred, target).item() == pytest.approx((0.5 + 0.05) / 2)


def test_fields_at_rest_are_measured_against_the_floor():
    target, pred = torch.zeros(1, 1, 8, 1), torch.full((1, 1, 8, 1), 0.01)
    assert loss("relative_l2", pred, target).item() == pytest.approx(0.01 / FLOOR)


def test_a_perfect_prediction_has_a_finite_gradient():
    target = torch.ones(1, 1, 8, 1)
    pred = target.clone().requires_grad_()
    loss("relative_l2", pred, target).sum().backward()
    assert bool(pred.grad.isfinite().all())


def test_cells_count_by_volume():
    grid = Grid.from_edges([torch.tensor([0.0, 0.9, 1.0])])
    pred, target = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 2, 1)
    pred[0, 0, 1, 0] = 1.0
    assert loss("mse", pred, target, grid=grid).item() == pytest.approx(0.1)
