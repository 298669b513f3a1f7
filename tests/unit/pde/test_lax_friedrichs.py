from __future__ import annotations

import pytest
import torch

from spectrakan.errors import SpectraKANError
from spectrakan.pde.droplet2d import SteppedInPlace, check_stable


def lax_friedrichs_step(state: torch.Tensor, ratio: tuple[float, float], gravity: float) -> torch.Tensor:
    """The scheme written out: a quarter of each cell moves to every neighbour, walls reverse normal momentum."""
    velocity = state[1:] / state[0]
    pressure = (0.5 * gravity) * state[0] ** 2
    later = torch.zeros_like(state)
    for axis in (0, 1):
        push = torch.zeros_like(state)
        push[1 + axis] = pressure
        flux = 0.5 * ratio[axis] * (state * velocity[axis] + push)
        ahead, back = 0.25 * state + flux, 0.25 * state - flux
        along, last = axis + 2, state.shape[axis + 2] - 1
        mirror = torch.ones_like(state[:, :1, :1, :1])
        mirror[1 + axis] = -1.0
        from_before = [mirror * back.narrow(along, 0, 1), ahead.narrow(along, 0, last)]
        from_after = [back.narrow(along, 1, last), mirror * ahead.narrow(along, last, 1)]
        later = later + torch.cat(from_before, along) + torch.cat(from_after, along)
    return later


def test_quick_step_agrees_with_the_readable_one(generator: torch.Generator):
    state = torch.rand(3, 2, 7, 5, dtype=torch.float64, generator=generator) + 0.5
    ratio, gravity = (0.05, 0.07), 3.0
    quick = SteppedInPlace(state.clone(), gravity)
    readable = state
    for _ in range(4):
        quick.step(ratio)
        readable = lax_friedrichs_step(readable, ratio, gravity)
    torch.testing.assert_close(quick.state, readable, rtol=1e-13, atol=1e-14)


def test_walls_send_momentum_back():
    """A stream against the wall: the last cell gets its own water back, and a push away from the wall."""
    state = torch.zeros(3, 1, 4, 4, dtype=torch.float64)
    state[0], state[1] = 1.0, 0.5
    later = lax_friedrichs_step(state, (0.2, 0.2), 1.0)
    torch.testing.assert_close(later[:, :, 1:-1], state[:, :, 1:-1])
    # Mass: the ghost behind the wall flows the other way, F = -0.5, so 1 - 0.1 (-0.5 - 0.5).
    assert later[0, 0, -1, 0].item() == pytest.approx(1.1)
    # Momentum: F = 0.75 on both sides; the mean of the neighbours is (0.5 - 0.5 + 0.5 + 0.5) / 4.
    assert later[1, 0, -1, 0].item() == pytest.approx(0.25)
    assert float(later[0].sum()) == pytest.approx(16.0)


def test_half_a_cell_a_step_is_the_limit():
    state = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)[:, None, None, None].expand(3, 1, 2, 2)
    check_stable(state, (0.24, 0.49), 1.0)  # speeds 1 + 1 and 0 + 1
    for ratio in ((0.26, 0.1), (0.1, 0.51)):
        with pytest.raises(SpectraKANError, match=r"at most 0\.5 cells"):
            check_stable(state, ratio, 1.0)
