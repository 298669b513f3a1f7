"""The parts of a step: transport that repairs itself, viscosity that only heats."""

from __future__ import annotations

import pytest
import torch

from spectrakan.errors import SpectraKANError
from spectrakan.pde.gas_scheme import GasScheme, to_conserved, to_primitive

GAMMA = 1.4


def scheme(boundary: str = "periodic", weighted: bool = False, viscosity: float = 0.1) -> GasScheme:
    return GasScheme(
        cell_width=0.1,
        gamma=GAMMA,
        viscosity=viscosity,
        density_weighted=weighted,
        boundary=boundary,
        courant=0.5,
    )


def states(cells: int, samples: int, generator: torch.Generator, decades: float) -> torch.Tensor:
    """Cells that know nothing of each other, density and pressure over several decades."""
    draws = torch.rand(3, cells, samples, generator=generator, dtype=torch.float64) * 2 - 1
    return to_conserved(torch.stack([10 ** (decades * draws[0]), 3 * draws[1], 10 ** (decades * draws[2])]), GAMMA)


def internal_energy(state: torch.Tensor) -> torch.Tensor:
    return state[2] - 0.5 * state[1] ** 2 / state[0]


@pytest.mark.parametrize("boundary", ["periodic", "outflow"])
def test_transport_stays_positive_where_second_order_alone_would_not(boundary, generator):
    gas = scheme(boundary)
    state = states(24, 300, generator, 3.0)
    step = gas.stable_step(state) / 4
    naive = gas._transport(state, step, None)
    assert bool((internal_energy(naive) <= 0).any() | (naive[0] <= 0).any())
    moved = gas.transport(state, step)
    assert float(moved[0].min()) > 0
    assert float(internal_energy(moved).min()) > 0
    # A sample that needs no repair is not touched by the repair of others.
    sound = ((naive[0] > 0) & (internal_energy(naive) > 0)).all(0)
    assert torch.equal(moved[:, :, sound], naive[:, :, sound])
    if boundary == "periodic":
        torch.testing.assert_close(moved.sum(1), state.sum(1), rtol=1e-11, atol=1e-9)


def test_a_state_beyond_repair_is_reported(generator):
    state = states(8, 2, generator, 0.1)
    state[2, 3, 1] = -1.0
    with pytest.raises(SpectraKANError, match="do not stay positive"):
        scheme().transport(state, torch.full((2,), 0.01, dtype=torch.float64))


@pytest.mark.parametrize("boundary", ["periodic", "outflow"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("stiffness", [0.01, 0.08])
def test_viscosity_is_the_implicit_midpoint_rule_and_turns_motion_into_heat(boundary, weighted, stiffness, generator):
    gas = scheme(boundary, weighted)
    state = states(10, 4, generator, 0.5)
    step = stiffness * torch.tensor([0.01, 0.05, 0.1, 0.2], dtype=torch.float64)
    after = gas.diffuse(state, step, 0.1)
    torch.testing.assert_close(after.sum(1), state.sum(1), rtol=1e-12, atol=1e-12)
    assert bool((internal_energy(after) >= internal_energy(state) * (1 - 1e-9)).all())
    velocity = to_primitive(state, GAMMA)[1]
    for sample in range(4):
        mass, matrix = viscous_matrices(gas, state[0, :, sample], float(step[sample]))
        expected = torch.linalg.solve(mass - matrix / 2, (mass + matrix / 2) @ velocity[:, sample])
        found = to_primitive(after, GAMMA)[1, :, sample]
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def viscous_matrices(gas: GasScheme, density: torch.Tensor, step: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Mass and dt L of one sample, face by face."""
    cells = len(density)
    matrix = torch.zeros(cells, cells, dtype=torch.float64)
    for left in range(cells if gas.boundary == "periodic" else cells - 1):
        right = (left + 1) % cells
        mu = gas.viscosity * (float(density[left] + density[right]) / 2 if gas.density_weighted else 1.0)
        matrix[left, left] -= mu
        matrix[right, right] -= mu
        matrix[left, right] += mu
        matrix[right, left] += mu
    return torch.diag(density), matrix * (step / gas.cell_width**2)


@pytest.mark.parametrize("boundary", ["periodic", "outflow"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("stiffness", [5.0, 1000.0])
def test_stiff_viscosity_is_the_two_stage_method_and_keeps_pressure_positive(
    boundary, weighted, stiffness, generator
):
    gas = scheme(boundary, weighted)
    state = states(10, 4, generator, 0.5)
    state[2] += 100.0  # warm, so that no pressure comes near 0
    step = stiffness * torch.tensor([0.05, 0.1, 0.2, 0.4], dtype=torch.float64)
    after = gas.diffuse(state, step, 0.1)
    torch.testing.assert_close(after.sum(1), state.sum(1), rtol=1e-12, atol=1e-12)
    assert float(internal_energy(after).min()) > 0
    gamma = 1 - 0.5**0.5
    for sample in range(4):
        mass, matrix = viscous_matrices(gas, state[0, :, sample], float(step[sample]))
        first = torch.linalg.solve(mass - gamma * matrix, state[1, :, sample])
        second = torch.linalg.solve(mass - gamma * matrix, state[1, :, sample] + (1 - gamma) * matrix @ first)
        torch.testing.assert_close(to_primitive(after, GAMMA)[1, :, sample], second, rtol=1e-8, atol=1e-8)


def test_a_sample_whose_pressure_would_fall_below_zero_takes_an_implicit_euler_step():
    """Cold gas with fast cells beside slow ones: two stages cool a cell, implicit Euler heats all of them."""
    gas = scheme()
    velocity = torch.tensor([30.0, 0, 0, 0, 0, 0, 0, 0, 0, 0], dtype=torch.float64)
    cold = torch.stack([torch.ones(10), velocity, torch.full((10,), 1e-9)]).double()
    state = to_conserved(cold[:, :, None], GAMMA)
    step = torch.tensor([1.0], dtype=torch.float64)
    after = gas.diffuse(state, step, 0.1)
    mass, matrix = viscous_matrices(gas, state[0, :, 0], 1.0)
    expected = torch.linalg.solve(mass - matrix, state[1, :, 0])
    torch.testing.assert_close(to_primitive(after, GAMMA)[1, :, 0], expected, rtol=1e-8, atol=1e-8)
    assert float(internal_energy(after).min()) > 0
    torch.testing.assert_close(after.sum(1), state.sum(1), rtol=1e-12, atol=1e-12)


def test_samples_of_a_batch_choose_their_viscous_method_alone(generator):
    gas, state = scheme(), states(10, 3, generator, 0.5)
    step = torch.tensor([1e-4, 10.0, 1e-3], dtype=torch.float64)
    together = gas.diffuse(state, step, 0.1)
    for index in range(3):
        chosen = slice(index, index + 1)
        alone = gas.diffuse(state[:, :, chosen], step[chosen], 0.1)
        torch.testing.assert_close(together[:, :, chosen], alone, rtol=1e-10, atol=1e-10)


def test_the_stable_step_is_four_times_half_a_cell_of_the_fastest_wave():
    quiet = torch.tensor([[1.0, 1.0], [0.0, -2.0], [1.0 / GAMMA, 1.0 / GAMMA]], dtype=torch.float64)
    state = to_conserved(quiet[:, :, None], GAMMA)
    assert scheme().stable_step(state).tolist() == pytest.approx([4 * 0.5 * 0.1 / 3.0])
