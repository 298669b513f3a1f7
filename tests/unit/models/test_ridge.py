"""The closed form against numpy's least squares, and its choice of penalty against leaving samples out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spectrakan.models.trivial import best_penalty, moments_of, ridge_weights


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
    assert np.allclose(ridge_weights(moments_of(x, y), penalty)[:-1].numpy(), expected, atol=1e-8)


def test_the_best_penalty_is_the_one_of_leaving_blocks_out_by_hand():
    x, y = problem(30, 12, 0.5)
    x, y = x + 3.0, y - 2.0  # means matter: each fit has an intercept
    penalties = [10.0**power for power in range(-6, 4)]
    errors = np.zeros(len(penalties))
    for block in range(3):
        out = np.arange(30) // 10 == block
        rest_x, rest_y = x[~out], y[~out]
        centre, middle = rest_x.mean(0), rest_y.mean(0)
        for place, penalty in enumerate(penalties):
            shifted = (rest_x - centre).T @ (rest_x - centre) + penalty * torch.eye(12).double()
            weights = torch.linalg.solve(shifted, (rest_x - centre).T @ (rest_y - middle))
            errors[place] += float((y[out] - middle - (x[out] - centre) @ weights).square().sum())
    assert 0 < errors.argmin() < 9, "the minimum must lie inside for this test to show anything"
    blocks = [moments_of(x[first : first + 10], y[first : first + 10]) for first in (0, 10, 20)]
    assert best_penalty(blocks, penalties) == penalties[errors.argmin()]


def test_a_fit_that_only_remembers_its_neighbours_is_not_taken():
    """Samples in time resemble each other: ten copies of each of six states, which say nothing of y."""
    x, y = problem(6, 20, 50.0)
    x, y = x.repeat_interleave(10, 0), y.repeat_interleave(10, 0)
    blocks = [moments_of(x[first : first + 10], y[first : first + 10]) for first in range(0, 60, 10)]
    assert best_penalty(blocks, [1e-12, 10.0]) == 10.0


def test_constant_samples_give_their_constant():
    """Features without any spread, whose moments are singular: the intercept answers, whatever the penalty."""
    x, y = torch.ones(10, 30, dtype=torch.float64) * 0.7, torch.full((10, 2), -3.0, dtype=torch.float64)
    weights = ridge_weights(moments_of(x, y), penalty=1e-38)
    assert torch.allclose(x @ weights[:-1] + weights[-1], y, atol=1e-9)
