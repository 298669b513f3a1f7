"""The parts of a step: transport that repairs itself, viscosity that only heats."""

from __future__ import annotations

import pytest
import torch

from spectrakan.errors import SpectraKANError
from spectrakan.pde.euler_flux import to_conserved, to_primitive
from spectrakan.pde.gas_scheme import GasScheme

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
    with pytest.raises(SpectraKANError, match="cannot be kept positive"):
        scheme().transport(state, torch.full((2,), 0.01, dtype=torch.float64))


@pytest.mark.parametrize("boundary", ["periodic", "outflow"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("stiffness", [0.01, 1.0, 1000.0])
def test_viscosity_is_the_implicit_midpoint_rule_and_turns_motion_into_heat(boundary, weighted, stiffness, generator):
    gas = scheme(boundary, weighted)
    state = states(10, 4, generator, 0.5)
    step = stiffness * torch.tensor([0.01, 0.05, 0.1, 0.2], dtype=torch.float64)
    after = gas.diffuse(state, step)
    torch.testing.assert_close(after.sum(1), state.sum(1), rtol=1e-12, atol=1e-12)
    assert bool((internal_energy(after) >= internal_energy(state) * (1 - 1e-9)).all())
    velocity = to_primitive(state, GAMMA)[1]
    for sample in range(4):
        density = state[0, :, sample]
        matrix = torch.zeros(10, 10, dtype=torch.float64)
        for left in range(10 if boundary == "periodic" else 9):
            right = (left + 1) % 10
            mu = 0.1 * (float(density[left] + density[right]) / 2 if weighted else 1.0)
            matrix[left, left] -= mu
            matrix[right, right] -= mu
            matrix[left, right] += mu
            matrix[right, left] += mu
        matrix *= step[sample] / gas.cell_width**2
        mass = torch.diag(density)
        expected = torch.linalg.solve(mass - matrix / 2, (mass + matrix / 2) @ velocity[:, sample])
        found = to_primitive(after, GAMMA)[1, :, sample]
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def test_the_stable_step_is_four_times_half_a_cell_of_the_fastest_wave():
    quiet = torch.tensor([[1.0, 1.0], [0.0, -2.0], [1.0 / GAMMA, 1.0 / GAMMA]], dtype=torch.float64)
    state = to_conserved(quiet[:, :, None], GAMMA)
    assert scheme().stable_step(state).tolist() == pytest.approx([4 * 0.5 * 0.1 / 3.0])
