from __future__ import annotations

import pytest
import torch

from spectrakan.errors import ShapeError
from spectrakan.metrics import anomaly_r2


@pytest.fixture
def truth(generator: torch.Generator) -> torch.Tensor:
    return 1000.0 + 8.0 * torch.randn(20, 1, 4, 6, 2, generator=generator)


@pytest.fixture
def weights() -> torch.Tensor:
    rows = torch.tensor([0.1, 0.4, 0.4, 0.1], dtype=torch.float64)
    return rows[:, None].expand(4, 6) / 6


def test_the_ends_of_the_scale_are_exact(truth: torch.Tensor, weights: torch.Tensor):
    usual = truth.mean(dim=(0, 1))
    assert anomaly_r2(truth, truth, usual, weights).tolist() == [1.0, 1.0]
    assert anomaly_r2(usual.expand_as(truth), truth, usual, weights).tolist() == [0.0, 0.0]
    mirrored = 2 * usual - truth
    assert anomaly_r2(mirrored, truth, usual, weights) == pytest.approx(torch.full((2,), -3.0), abs=1e-5)


def test_half_of_each_anomaly_explains_three_quarters(truth: torch.Tensor, weights: torch.Tensor):
    usual = truth.mean(dim=(0, 1))
    pred = usual + 0.5 * (truth - usual)
    assert anomaly_r2(pred, truth, usual, weights) == pytest.approx(torch.full((2,), 0.75), abs=1e-6)


def test_an_error_counts_by_the_area_it_covers(truth: torch.Tensor, weights: torch.Tensor):
    usual = truth.mean(dim=(0, 1))
    by_row = []
    for row in range(4):
        pred = truth.clone()
        pred[:, :, row] += 2.0
        missed = 1 - anomaly_r2(pred, truth, usual, weights)
        by_row.append(float(missed[0]))
    assert by_row[1] / by_row[0] == pytest.approx(4.0, rel=1e-5)
    spread = ((truth - usual).double().square().mean(dim=(0, 1, 3))[:, 0] * weights.sum(1)).sum()
    assert by_row[0] == pytest.approx(float(0.1 * 4.0 / spread), rel=1e-5)


def test_fields_are_scored_apart_and_a_constant_truth_has_no_score(weights: torch.Tensor):
    truth = torch.zeros(3, 1, 4, 6, 2)
    truth[..., 1] = torch.tensor([-1.0, 0.0, 1.0]).reshape(3, 1, 1, 1)
    score = anomaly_r2(truth * 0.9, truth, torch.zeros(4, 6, 2), weights)
    assert bool(score[0].isnan())
    assert float(score[1]) == pytest.approx(0.99, abs=1e-6)


def test_shapes_that_do_not_fit_are_named(truth: torch.Tensor, weights: torch.Tensor):
    usual = truth.mean(dim=(0, 1))
    with pytest.raises(ShapeError, match="must have the same shape"):
        anomaly_r2(truth[:5], truth, usual, weights)
    with pytest.raises(ShapeError, match=r"climatology must be \(4, 6, 2\)"):
        anomaly_r2(truth, truth, usual[..., :1], weights)
    with pytest.raises(ShapeError, match=r"weights \(4, 6\)"):
        anomaly_r2(truth, truth, usual, weights[:2])
