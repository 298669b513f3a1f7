"""Errors cell by cell."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.errors import ShapeError
from spectrakan.fields import Grid
from spectrakan.metrics import evaluate_fields, relative_error
from spectrakan.metrics.frame_errors import frame_errors


def test_rmse_and_largest_of_one_wrong_cell():
    target = torch.zeros(2, 1, 4, 4, 1)
    pred = target.clone()
    pred[1, 0, 2, 3, 0] = -8.0
    scores = evaluate_fields(pred, target)
    assert scores["rmse"] == pytest.approx((0.0 + 2.0) / 2, rel=1e-14)
    assert scores["max_error"] == 8.0


def test_rmse_is_a_mean_over_samples_of_roots_not_a_root_of_means():
    target = torch.zeros(2, 1, 4, 1)
    pred = target + torch.tensor([1.0, 3.0]).reshape(2, 1, 1, 1)
    assert evaluate_fields(pred, target)["rmse"] == pytest.approx(2.0, rel=1e-14)


def test_largest_is_by_sample_frame_and_field():
    values = torch.zeros(2, 2, 3, 2)
    values[0, 1, 2, 0], values[1, 0, 0, 1] = -5.0, 4.0
    found = frame_errors(values, torch.zeros_like(values), torch.full((3,), 1 / 3), signed=True).largest
    assert found.tolist() == [[[0.0, 0.0], [5.0, 0.0]], [[0.0, 4.0], [0.0, 0.0]]]


def test_relative_error_by_frame_with_cell_volumes():
    grid = Grid.from_edges([torch.tensor([0.0, 3.0, 4.0])])
    target = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]).reshape(1, 3, 2, 1)
    pred = target + torch.tensor([[2.0, 0.0], [0.0, 0.0], [1.0, 0.0]]).reshape(1, 3, 2, 1)
    found = relative_error(pred, target, grid).flatten().tolist()
    assert found[0] == pytest.approx(math.sqrt(3.0), rel=1e-14)
    assert found[1] == 0.0
    assert math.isnan(found[2])
    with pytest.raises(ShapeError, match="same shape"):
        relative_error(pred, target[:, :2], grid)
