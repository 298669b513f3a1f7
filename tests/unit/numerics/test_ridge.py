"""The closed form against numpy's least squares, and its shortcuts against what they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spectrakan.numerics.ridge import best_penalty, ridge_weights


def problem(count: int, inputs: int, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    source = np.random.default_rng(0)
    x = source.normal(size=(count, inputs)) * np.logspace(0, -2, inputs)
    y = x @ source.normal(size=(inputs, 3)) + noise * source.normal(size=(count, 3))
    return torch.tensor(x - x.mean(0)), torch.tensor(y - y.mean(0))


@pytest.mark.parametrize("penalty", [1e-6, 0.1, 30.0])
@pytest.mark.parametrize("count", [5, 40])
def test_weights_are_those_of_the_augmented_least_squares_problem(count, penalty):
    """min |Y - XW|^2 + l |W|^2 is the plain problem with sqrt(l) I below X and zeros below Y."""
    x, y = problem(count, 8, 0.1)
    below = np.concatenate([x.numpy(), np.sqrt(penalty) * np.eye(8)])
    expected = np.linalg.lstsq(below, np.concatenate([y.numpy(), np.zeros((8, 3))]), rcond=None)[0]
    assert np.allclose(ridge_weights(x.T @ x, x.T @ y, penalty).numpy(), expected, atol=1e-8)


def test_the_best_penalty_has_the_least_score_worked_out_with_the_hat_matrix():
    x, y = problem(30, 12, 0.5)
    penalties = [10.0**power for power in range(-6, 4)]
    scores = []
    for penalty in penalties:
        hat = x @ torch.linalg.solve(x.T @ x + penalty * torch.eye(12).double(), x.T)
        left = 30 - 1 - float(hat.trace())
        scores.append(float((y - hat @ y).square().sum()) / left**2)
    assert 0 < scores.index(min(scores)) < 9, "the minimum must lie inside for this test to show anything"
    chosen = best_penalty(x.T @ x, x.T @ y, float(y.square().sum()), 30, penalties)
    assert chosen == penalties[scores.index(min(scores))]


def test_with_more_features_than_samples_a_penalty_that_only_memorises_is_not_taken():
    x, y = problem(6, 20, 1.0)
    assert best_penalty(x.T @ x, x.T @ y, float(y.square().sum()), 6, [1e-14, 1.0]) == 1.0
