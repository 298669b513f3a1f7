"""Fisher-KPP: exact special cases, what is conserved, what the drawn states look like."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.errors import ShapeError, SpectraKANError
from spectrakan.pde.diffusion_reaction1d import (
    EQUATION,
    DiffusionReaction1DParameters,
    sample,
    solve,
)


def drawn(count: int, cells: int) -> torch.Tensor:
    return sample(count, (cells,), DiffusionReaction1DParameters(), torch.Generator().manual_seed(3))


def test_without_reaction_the_mean_is_conserved_and_modes_decay_exactly():
    initial = drawn(20, 64)
    parameters = DiffusionReaction1DParameters(rho=0.0)
    final = solve(initial, [0.0, 0.013, 0.4], parameters)[..., 0]
    means = final.mean(-1)
    torch.testing.assert_close(means, means[:, :1].expand_as(means), rtol=1e-12, atol=0)
    wave = 2 * math.pi * torch.arange(33, dtype=torch.float64)
    exact = torch.fft.irfft(torch.fft.rfft(initial[..., 0]) * torch.exp(-0.5 * 0.013 * wave**2), n=64)
    torch.testing.assert_close(final[:, 1], exact, rtol=1e-11, atol=1e-13)


def test_without_diffusion_every_cell_grows_by_the_logistic_curve():
    initial = drawn(5, 32)
    final = solve(initial, [1.5], DiffusionReaction1DParameters(nu=0.0, rho=2.0))[:, 0]
    growth = math.exp(3.0)
    torch.testing.assert_close(final, initial * growth / (1 + initial * (growth - 1)), rtol=1e-8, atol=1e-10)


def test_the_fixed_points_do_not_move():
    initial = torch.stack([torch.zeros(16, 1), torch.ones(16, 1)]).double()
    torch.testing.assert_close(solve(initial, [1.0], EQUATION.parameters())[:, 0], initial, rtol=1e-12, atol=0)


def test_frames_do_not_depend_on_the_other_frames_asked_for():
    initial = drawn(3, 64)
    parameters = DiffusionReaction1DParameters()
    often = solve(initial, EQUATION.times, parameters)
    once = solve(initial, [1.0], parameters)
    torch.testing.assert_close(often[:, -1:], once, rtol=0, atol=1e-8)
    assert torch.equal(often[:, 0], initial)


def test_drawn_states_fill_the_unit_interval_at_every_resolution():
    states = drawn(300, 64)
    assert float(states.amin()) >= 0.0
    assert float(states.amax()) <= 1.0
    assert float(states.amin((1, 2)).max()) < 0.15
    assert float(states.amax((1, 2)).min()) > 0.85
    torch.testing.assert_close(drawn(300, 192)[:, 1::3], states, rtol=0, atol=1e-12)
    assert len({tuple(state.flatten().tolist()) for state in states}) == 300


def test_growth_is_right_over_times_whose_steps_float32_rounds_away():
    """At nu = 0.5 on 1024 points explicit float32 steps of 2^-22 do not move 0.8; the truth is rho u (1 - u) t."""
    levels = torch.tensor([0.4, 0.8, 0.9], dtype=torch.float64)
    time = 400 * 2.0**-22
    grown = solve(levels.reshape(3, 1, 1).expand(3, 1024, 1), [time], DiffusionReaction1DParameters())[:, 0, 0, 0]
    torch.testing.assert_close(grown - levels, levels * (1 - levels) * time, rtol=1e-3, atol=0)


@pytest.mark.parametrize(("level", "rho"), [(-0.5, 1.0), (1.5, -1.0)])
def test_blow_up_is_refused_with_its_time_and_values_before_it_are_exact(level, rho):
    """u' = u (1 - u) from -1/2 is u = -1 / (3 e^-t - 1), infinite at t = log 3; 1 - u mirrors it with rho = -1."""
    initial = torch.full((3, 8, 1), 0.5, dtype=torch.float64)
    initial[2] = level
    parameters = DiffusionReaction1DParameters(rho=rho)
    before = solve(initial, [1.0], parameters)[2, 0, 0, 0]
    exact = -1 / (3 * math.exp(-1.0) - 1)
    assert float(before) == pytest.approx(exact if rho > 0 else 1 - exact, rel=1e-6)
    with pytest.raises(SpectraKANError, match=r"sample 2 goes to infinity near t = 1\.09"):
        solve(initial, [1.0, 1.2], parameters)


def test_samples_with_parameters_of_their_own_are_solved_in_one_batch_as_one_by_one():
    initial = drawn(6, 32)
    values = {
        "nu": torch.tensor([0.0, 0.001, 0.01, 0.3, 1.0, 5.0], dtype=torch.float64),
        "rho": torch.linspace(-2.0, 3.0, 6, dtype=torch.float64),
    }
    times = [0.0, 0.003, 0.4, 0.7]
    together = EQUATION.solve_varied(initial, times, DiffusionReaction1DParameters(), values)
    for index in range(6):
        alone = DiffusionReaction1DParameters(nu=float(values["nu"][index]), rho=float(values["rho"][index]))
        torch.testing.assert_close(
            together[index : index + 1], solve(initial[index : index + 1], times, alone), rtol=1e-11, atol=1e-13
        )


def test_impossible_requests_are_refused():
    parameters = DiffusionReaction1DParameters()
    with pytest.raises(ShapeError, match="batch, cells, 1"):
        solve(torch.zeros(4, 8), [1.0], parameters)
