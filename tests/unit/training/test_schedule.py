"""Learning rates at the steps where they are known."""

from __future__ import annotations

from itertools import pairwise

import pytest

from spectrakan.training.optimizer import rate_factor


def test_one_cycle_rises_to_one_and_falls_to_almost_nothing():
    rates = [rate_factor("one_cycle", step, 201, warmup=0.25) for step in range(201)]
    assert rates[0] == pytest.approx(1 / 25)
    assert rates[50] == max(rates) == 1.0
    assert rates[25] == pytest.approx((1 + 1 / 25) / 2)  # half-way up
    assert rates[200] == pytest.approx(1e-4)
    assert all(a < b for a, b in pairwise(rates[:51]))
    assert all(a > b for a, b in pairwise(rates[50:]))


def test_cosine_is_straight_in_warm_up_and_half_at_half():
    rates = [rate_factor("cosine", step, 111, warmup=10 / 110) for step in range(111)]
    assert rates[0] == pytest.approx(1 / 11)
    assert rates[4] == pytest.approx(5 / 11)
    assert rates[60] == pytest.approx(0.5)
    assert rates[110] == pytest.approx(0.0, abs=1e-12)


def test_without_warm_up_the_first_step_is_the_largest():
    assert rate_factor("one_cycle", 0, 10, warmup=0.0) == 1.0
    assert rate_factor("cosine", 0, 1, warmup=0.0) == 1.0
