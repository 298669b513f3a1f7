"""Learning rates at the steps where they are known."""

from __future__ import annotations

from itertools import pairwise

import pytest

from spectrakan.training.session import rate_factor


def test_one_cycle_rises_to_one_and_falls_to_almost_nothing():
    rates = [rate_factor(step, 201, warmup=0.25) for step in range(201)]
    assert rates[0] == pytest.approx(1 / 25)
    assert rates[50] == max(rates) == 1.0
    assert rates[25] == pytest.approx((1 + 1 / 25) / 2)  # half-way up
    assert rates[200] == pytest.approx(1e-4)
    assert all(a < b for a, b in pairwise(rates[:51]))
    assert all(a > b for a, b in pairwise(rates[50:]))


def test_without_warm_up_the_first_step_is_the_largest():
    assert rate_factor(0, 10, warmup=0.0) == 1.0
    assert rate_factor(0, 1, warmup=0.0) == 1.0
