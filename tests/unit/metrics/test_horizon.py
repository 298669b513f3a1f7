"""How long a prediction stays good."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.errors import ShapeError
from spectrakan.metrics import time_to_threshold


def test_exponential_growth_crosses_where_it_should():
    times = torch.linspace(0, 5, 2001, dtype=torch.float64)
    errors = torch.stack([1e-3 * torch.exp(rate * times) for rate in (1.0, 2.0)])
    found = time_to_threshold(errors, times.numpy(), 0.1)
    assert found.tolist() == pytest.approx([math.log(100), math.log(100) / 2], rel=1e-5)


def test_never_at_once_and_after_a_blow_up():
    errors = torch.tensor(
        [[0.0, 0.1, 0.2], [0.9, 0.1, 0.9], [0.1, math.nan, 0.1], [math.nan, 0.0, 0.0], [0, 0, math.inf]]
    )
    found = time_to_threshold(errors, [1.0, 2.0, 4.0], 0.5)
    assert found.tolist() == [math.inf, 1.0, 1.0, 1.0, 2.0]


def test_the_threshold_itself_has_not_passed():
    assert time_to_threshold(torch.tensor([0.5, 0.5]), [0.0, 1.0], 0.5).item() == math.inf


def test_times_must_fit():
    with pytest.raises(ShapeError, match="one time for each frame"):
        time_to_threshold(torch.zeros(2, 3), [0.0, 1.0], 0.5)
