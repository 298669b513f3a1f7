"""Times of rollouts."""

from __future__ import annotations

import time

import pytest
import torch
from known_operators import Scaled, evolving, held

from spectrakan.errors import ConfigError
from spectrakan.evaluation import rollout_cost


class Slow(Scaled):
    """Takes a known time for each frame."""

    def __init__(self, signature, pause=0.02):
        super().__init__(signature)
        self.pause = pause

    def _forward(self, history, params, axes):
        time.sleep(self.pause)
        return super()._forward(history, params, axes)


def test_time_of_a_rollout():
    data = held(samples=3, frames=6, space=(64,))
    found = rollout_cost(Slow(evolving((64,))), data, rounds=2)
    assert 0.1 <= found["seconds"] < 10
    assert found["seconds_per_frame"] == pytest.approx(found["seconds"] / 15)
    assert (found["num_samples"], found["horizon"], found["device"]) == (3, 5, "cpu")
    assert found["threads"] == torch.get_num_threads()


def test_no_rounds_are_refused():
    with pytest.raises(ConfigError, match="at least one round"):
        rollout_cost(Scaled(evolving((8,))), held(samples=1, frames=6, space=(8,)), rounds=0)
