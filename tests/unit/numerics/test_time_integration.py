"""Batches reach frame times exactly, whatever their pool."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.errors import ConfigError, SpectraKANError
from spectrakan.numerics.time_integration import advance_to_frames


def decay(rates: torch.Tensor, pool: int, times: list[float]) -> torch.Tensor:
    """States (2, samples): the value that decays exactly, and the rate it decays by."""
    initial = torch.stack([torch.ones_like(rates), rates])

    def take(state: torch.Tensor, step: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        return torch.stack([state[0] * (-state[1] * step).exp(), state[1]])

    return advance_to_frames(initial, times, take, lambda state: 0.1 / state[1], axis=1, pool=pool)


@pytest.mark.parametrize("pool", [1, 3, 100])
def test_every_sample_arrives_at_every_frame_whatever_the_pool(pool, generator):
    rates = 0.5 + 5.0 * torch.rand(11, generator=generator, dtype=torch.float64)
    times = [0.0, 0.0, 0.3, 0.30001, 2.0]
    frames = decay(rates, pool, times)
    exact = (-rates[:, None] * torch.tensor(times, dtype=torch.float64)).exp()
    torch.testing.assert_close(frames[:, :, 0], exact, rtol=1e-12, atol=0)
    assert torch.equal(frames[:, :, 1], rates[:, None].expand(11, 5))


def test_steps_never_pass_the_stable_one_and_never_waste_more_than_one_in_a_frame():
    taken: list[torch.Tensor] = []

    def take(state: torch.Tensor, step: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        taken.append(step.clone())
        return state

    limits = torch.tensor([0.3, 0.07], dtype=torch.float64)
    advance_to_frames(limits, [0.5, 1.0], take, lambda state: state)
    assert sum(len(step) for step in taken) == 2 * 2 + 2 * 8
    assert max(float(step.max()) for step in taken) <= 0.3
    assert sum(float(step.sum()) for step in taken) == pytest.approx(2.0, abs=1e-12)


def test_a_state_that_breaks_down_is_reported_with_its_sample_and_time():
    def take(state: torch.Tensor, step: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        return torch.where(state > 1.5, torch.nan, state)

    states = torch.tensor([1.0, 2.0], dtype=torch.float64)
    with pytest.raises(SpectraKANError, match=r"sample 1 has no stable time step at t = 0\.25"):
        advance_to_frames(states, [1.0], take, lambda state: 0.25 * state / state)


def test_steps_are_given_the_indices_of_their_samples_in_the_batch(generator):
    rates = 0.5 + 5.0 * torch.rand(9, generator=generator, dtype=torch.float64)

    def take(state: torch.Tensor, step: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        return state * (-rates[members] * step).exp()

    frames = advance_to_frames(torch.ones_like(rates), [0.5, 1.0], take, lambda u: 0.02 + 0.1 * u, pool=4)
    torch.testing.assert_close(frames[:, 1], (-rates).exp(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("times", [[], [-1.0], [1.0, 0.5], [math.nan]])
def test_impossible_times_are_refused(times):
    with pytest.raises(ConfigError, match="times"):
        advance_to_frames(torch.ones(1), times, lambda state, step, members: state, lambda state: state)
