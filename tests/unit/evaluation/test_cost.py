"""Costs of rollouts: memory counted to the byte, and times."""

from __future__ import annotations

import time

import pytest
import torch
from known_operators import Scaled, evolving, held

from spectrakan.errors import ConfigError
from spectrakan.evaluation import rollout_cost
from spectrakan.evaluation.cost import peak_bytes

CPU = torch.device("cpu")


class Slow(Scaled):
    """Takes a known time for each frame."""

    def __init__(self, signature, pause=0.02):
        super().__init__(signature)
        self.pause = pause

    def _forward(self, history, params, axes):
        time.sleep(self.pause)
        return super()._forward(history, params, axes)


def test_memory_is_counted_to_the_byte():
    x = torch.zeros(1000)
    assert peak_bytes(lambda: x.view(10, 100).add_(1.0), CPU) == 0  # nothing new
    assert peak_bytes(lambda: x + 1, CPU) == 4000
    assert peak_bytes(lambda: (x + 1).double(), CPU) == 12000  # both live at once
    assert peak_bytes(lambda: [float((x + 1)[0]) for _ in range(9)], CPU) < 4100  # one after the other

    def held_together() -> list[torch.Tensor]:
        return [x + place for place in range(9)]

    assert peak_bytes(held_together, CPU) == 36000


def test_time_and_memory_of_a_rollout():
    data = held(samples=3, frames=6, space=(64,))
    found = rollout_cost(Slow(evolving((64,))), data, rounds=2)
    assert 0.1 <= found["seconds"] < 10
    assert found["seconds_per_frame"] == pytest.approx(found["seconds"] / 15)
    assert (found["num_samples"], found["horizon"], found["device"]) == (3, 5, "cpu")
    assert found["threads"] == torch.get_num_threads()
    frame = 3 * 64 * 4
    # All five frames, their stack, and a few of the step at hand.
    assert 10 * frame <= found["peak_memory_mb"] * 1e6 <= 20 * frame
    double = rollout_cost(Scaled(evolving((64,))), data, horizon=5, samples=[0, 1, 2, 0, 1, 2], rounds=1)
    assert double["peak_memory_mb"] == pytest.approx(2 * found["peak_memory_mb"], rel=0.01)


def test_no_rounds_are_refused():
    with pytest.raises(ConfigError, match="at least one round"):
        rollout_cost(Scaled(evolving((8,))), held(samples=1, frames=6, space=(8,)), rounds=0)
