"""Means over the domain and how they drift."""

from __future__ import annotations

import pytest
import torch

from spectrakan.errors import ShapeError
from spectrakan.fields import Grid
from spectrakan.metrics import drift, evaluate_fields


def test_an_error_without_mean_is_conserved_and_one_with_mean_is_not():
    x = torch.arange(16) / 16
    target = torch.ones(1, 2, 16, 1)
    wave = torch.sin(2 * torch.pi * x).reshape(1, 1, 16, 1)
    assert evaluate_fields(target + wave, target)["crmse"] < 1e-8
    assert evaluate_fields(target + wave + 0.25, target)["crmse"] == pytest.approx(0.25, rel=1e-6)


def test_opposite_biases_of_two_frames_do_not_cancel():
    target = torch.zeros(1, 2, 8, 1)
    pred = target + torch.tensor([3.0, -4.0]).reshape(1, 2, 1, 1)
    assert evaluate_fields(pred, target)["crmse"] == pytest.approx((12.5) ** 0.5, rel=1e-14)


def test_drift_counts_volume_and_starts_at_the_initial_state():
    grid = Grid.from_edges([torch.tensor([0.0, 1.0, 4.0])])
    values = torch.tensor([[2.0, 0.0], [0.0, 2.0]]).reshape(1, 2, 2, 1)
    assert drift(values, grid=grid).flatten().tolist() == [0.0, 1.0]
    initial = torch.tensor([4.0, 4.0]).reshape(1, 2, 1)
    assert drift(values, initial, grid).flatten().tolist() == [-3.5, -2.5]
    assert drift(values.numpy(), initial.numpy(), grid).flatten().tolist() == [-3.5, -2.5]


def test_moving_mass_about_is_no_drift(generator):
    field = torch.rand(2, 1, 6, 8, 3, generator=generator, dtype=torch.float64)
    frames = torch.cat([field.roll((i, 2 * i), (2, 3)) for i in range(4)], dim=1)
    assert drift(frames).abs().max() < 1e-15


def test_an_initial_state_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match="initial state must have shape"):
        drift(torch.zeros(2, 3, 8, 1), torch.zeros(2, 9, 1))
