"""Compressible flow: what is conserved, what stays positive, what the drawn states look like."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.config import build_settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.pde.cns1d import EQUATION, CNS1DParameters, sample, solve
from spectrakan.pde.gas_scheme import hllc_flux, to_conserved, to_primitive


def conserved(states: torch.Tensor, gamma: float = 5.0 / 3.0) -> torch.Tensor:
    return to_conserved(states.movedim(-1, 0), gamma).movedim(0, -1)


def drawn(count: int, cells: int, **choices: object) -> tuple[torch.Tensor, CNS1DParameters]:
    parameters = build_settings(CNS1DParameters, choices)
    return sample(count, (cells,), parameters, torch.Generator().manual_seed(1)), parameters


def test_conserved_and_primitive_variables_are_inverse(generator):
    states = 0.5 + torch.rand(3, 50, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(to_primitive(to_conserved(states, 1.4), 1.4), states, rtol=1e-13, atol=0)


def euler_flux(primitive: torch.Tensor, gamma: float) -> torch.Tensor:
    """(m, m v + p, (E + p) v) of a primitive state."""
    _, velocity, pressure = primitive
    momentum, energy = to_conserved(primitive, gamma)[1:]
    return torch.stack([momentum, momentum * velocity + pressure, (energy + pressure) * velocity])


def hllc(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.stack(hllc_flux((left[0], left[1], left[2]), (right[0], right[1], right[2]), 1.4))


def test_hllc_is_consistent_mirrors_itself_and_leaves_contacts_alone(generator):
    left = torch.rand(3, 200, generator=generator, dtype=torch.float64) + 0.1
    right = torch.rand(3, 200, generator=generator, dtype=torch.float64) + 0.1
    left[1], right[1] = 6 * left[1] - 3, 6 * right[1] - 3
    torch.testing.assert_close(hllc(left, left), euler_flux(left, 1.4), rtol=1e-12, atol=1e-12)
    turn = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)[:, None]
    mirrored = hllc(turn * right, turn * left)
    torch.testing.assert_close(-turn * mirrored, hllc(left, right), rtol=1e-12, atol=1e-12)
    resting_l, resting_r = left.clone(), right.clone()
    resting_l[1] = resting_r[1] = 0.0
    resting_r[2] = resting_l[2]
    flux = hllc(resting_l, resting_r)
    torch.testing.assert_close(flux[1], resting_l[2], rtol=1e-13, atol=1e-13)
    assert float(flux[0::2].abs().max()) < 1e-13


@pytest.mark.parametrize("viscosity", ["dynamic", "density_weighted"])
def test_mass_momentum_and_energy_are_conserved_on_a_ring(viscosity):
    initial, parameters = drawn(6, 64, min_cells=1, viscosity=viscosity, eta=0.05)
    frames = conserved(solve(initial, [0.0, 0.2, 0.4], parameters))
    total = frames.mean(2)
    scale = frames.abs().mean((1, 2))[:, None]
    assert float(((total - total[:, :1]) / scale).abs().max()) < 1e-12


def test_samples_do_not_feel_each_other():
    initial, parameters = drawn(4, 64, min_cells=64)
    together = solve(initial, [0.1, 0.2], parameters)
    alone = torch.cat([solve(one[None], [0.1, 0.2], parameters) for one in initial])
    torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-12)


def test_solving_on_more_cells_returns_averages_close_to_a_fine_solution():
    states, parameters = drawn(2, 256, min_cells=1, eta=0.05, zeta=0.05)
    fine = conserved(solve(states, [0.1], parameters)).reshape(2, 1, 32, 8, 3).mean(3)
    averages = conserved(states).reshape(2, 32, 8, 3).mean(2)
    coarse = to_primitive(averages.movedim(-1, 0), 5.0 / 3.0).movedim(0, -1)
    errors = {}
    for cells in (32, 128):
        found = solve(
            coarse,
            [0.0, 0.1],
            build_settings(
                CNS1DParameters,
                {
                    "eta": 0.05,
                    "zeta": 0.05,
                    "min_cells": cells,
                },
            ),
        )
        torch.testing.assert_close(found[:, 0], coarse, rtol=1e-12, atol=1e-12)
        errors[cells] = float((conserved(found[:, 1:]) - fine).abs().mean())
    assert errors[128] < 0.6 * errors[32]


def test_near_vacuum_and_strong_shocks_stay_positive():
    """Two gases torn apart at Mach 6 from rest pressure 0.01, and pushed together at the same speed."""
    cells = 64
    side = torch.linspace(-1, 1, cells, dtype=torch.float64).sign()
    apart = torch.stack([torch.ones(cells), 0.8 * side, torch.full((cells,), 0.01)], -1).double()
    together = apart * torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    blast = torch.stack([torch.ones(cells), torch.zeros(cells), 10.0 ** (3 * side)], -1).double()
    parameters = CNS1DParameters(eta=0.0, zeta=0.0, gamma=1.4, boundary="outflow", min_cells=1)
    frames = solve(torch.stack([apart, together]), [0.02, 0.6], parameters)
    for states in (frames, solve(blast[None], [0.002, 0.02], parameters)):
        assert bool(torch.isfinite(states).all())
        assert float(states[..., 0::2].min()) > 0.0
    assert float(frames[0, -1, cells // 2, 0]) < 0.2
    # Behind two strong shocks the density approaches (gamma + 1) / (gamma - 1) = 6 times the first.
    assert float(frames[1, -1, cells // 2 - 2, 0]) > 4.0
    # Mirror symmetry of the first two survives every repair of single cells.
    for index in (0, 1):
        flipped = frames[index].flip(1) * torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
        torch.testing.assert_close(flipped, frames[index], rtol=1e-9, atol=1e-9)


def test_waves_leave_through_open_ends():
    cells = 128
    x = torch.linspace(-1, 1, cells, dtype=torch.float64)
    pulse = 1.0 + 0.01 * torch.exp(-100 * x**2)
    initial = torch.stack([pulse ** (1 / 1.4), torch.zeros_like(x), pulse], -1)[None]
    parameters = CNS1DParameters(eta=0.0, zeta=0.0, gamma=1.4, boundary="outflow", min_cells=1)
    final = solve(initial, [2.0], parameters)[0, 0]
    assert float(final[:, 1].abs().max()) < 1e-4
    assert float((final[:, 2] - 1.0).abs().max()) < 1e-4


def test_random_fields_have_the_stated_ranges_and_do_not_depend_on_resolution():
    initial, parameters = drawn(400, 64)
    density, velocity, pressure = initial.unbind(-1)
    assert 1.0 <= float(density.min()) < 1.3
    assert float(density.max()) <= 20.0
    assert 10.0 <= float(pressure.min()) < 13.0
    assert float(pressure.max()) <= 200.0
    assert float(velocity.abs().max()) <= 3.0
    # b + m U: E[b] = 9 / ln 10, and the same for m.
    assert float(density.mean()) == pytest.approx(5.9, abs=0.4)
    finer = sample(400, (192,), parameters, torch.Generator().manual_seed(1))
    torch.testing.assert_close(finer[:, 1::3], initial, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("eta", [1.0, 100.0])
def test_strong_viscosity_damps_short_waves(eta):
    """A velocity of 4 cells a wave decays by exp(-mu k^2 t / rho), which is nothing after the first frame."""
    cells = 64
    wave = 0.1 * torch.sin(math.pi / 2 * torch.arange(cells, dtype=torch.float64))
    state = torch.stack([torch.ones(cells).double(), wave, torch.full((cells,), 10.0).double()], -1)[None]
    final = solve(state, [0.05], CNS1DParameters(eta=eta, min_cells=1))[0, 0, :, 1]
    assert float(final.abs().max()) < 1e-3 * float(wave.abs().max())


def test_samples_with_viscosities_of_their_own_are_solved_in_one_batch_as_one_by_one():
    initial, parameters = drawn(5, 32)
    values = {
        "eta": torch.tensor([0.0, 1e-3, 0.01, 0.1, 50.0], dtype=torch.float64),
        "zeta": torch.tensor([0.0, 0.02, 0.01, 0.0, 1.0], dtype=torch.float64),
    }
    times = [0.1, 0.3]
    together = EQUATION.solve_varied(initial, times, parameters, values)
    for index in range(5):
        alone = CNS1DParameters(eta=float(values["eta"][index]), zeta=float(values["zeta"][index]))
        chosen = slice(index, index + 1)
        torch.testing.assert_close(together[chosen], solve(initial[chosen], times, alone), rtol=1e-9, atol=1e-9)
        assert bool((together[chosen, 1] != together[(index + 1) % 5, 1]).any())


def test_impossible_states_and_settings_are_refused():
    parameters = CNS1DParameters()
    with pytest.raises(ShapeError, match="density, velocity, pressure"):
        solve(torch.ones(2, 16, 2), [1.0], parameters)
    with pytest.raises(ConfigError, match="positive density"):
        solve(-torch.ones(1, 16, 3), [1.0], parameters)
    with pytest.raises(ConfigError, match="eta"):
        build_settings(CNS1DParameters, {"eta": -1.0})


def test_the_task_is_the_documented_one():
    assert [field.name for field in EQUATION.fields] == ["density", "velocity", "pressure"]
    assert len(EQUATION.times) == 21
    assert EQUATION.times[-1] == 1.0
    assert EQUATION.grid().bounds == ((-1.0, 1.0),)
