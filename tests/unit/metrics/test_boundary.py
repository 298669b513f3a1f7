"""Errors at the edge of the domain."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.metrics import evaluate_fields


@pytest.mark.parametrize("space", [(9,), (6, 8), (4, 5, 6)], ids=str)
def test_errors_inside_do_not_count(space):
    target = torch.zeros(1, 1, *space, 1)
    pred = target.clone()
    pred[(0, 0, *(slice(1, -1) for _ in space), 0)] = 7.0
    scores = evaluate_fields(pred, target)
    assert scores["brmse"] == 0.0
    assert scores["max_error"] == 7.0


def test_a_side_of_a_plane_counts_by_its_cells_and_its_corners_twice():
    target = torch.zeros(1, 1, 6, 8, 1)
    pred = target.clone()
    pred[0, 0, 0, :, 0] = 1.0  # 8 cells of one side, and a corner on each of two others
    assert evaluate_fields(pred, target)["brmse"] == pytest.approx(math.sqrt(10 / 28), rel=1e-14)


def test_fields_stay_apart_in_space_unless_pdebench_is_asked():
    target = torch.zeros(1, 1, 4, 4, 4, 4)
    exact = evaluate_fields(target + 1.0, target)
    published = evaluate_fields(target + 1.0, target, convention="pdebench", batch_size=1)
    assert exact["brmse"] == pytest.approx(1.0, rel=1e-14)
    assert published["brmse"] == pytest.approx(2.0, rel=1e-14)  # too big by sqrt(4 fields), as published
