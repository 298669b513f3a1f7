"""Cyclic reduction against dense solves, for every size, closed and open."""

from __future__ import annotations

import pytest
import torch

from spectrakan.numerics.tridiagonal import factor_ring, levels_needed, solve_ring


def dense(diagonal: torch.Tensor, coupling: torch.Tensor) -> torch.Tensor:
    size = diagonal.shape[0]
    matrix = torch.diag(diagonal)
    for cell in range(size):
        other = (cell + 1) % size
        matrix[cell, other] -= coupling[cell]
        matrix[other, cell] -= coupling[cell]
    return matrix


def ring(size: int, batch: int, stiffness: float, generator: torch.Generator, closed: bool):
    coupling = stiffness * torch.rand(size, batch, generator=generator, dtype=torch.float64)
    if not closed:
        coupling[-1] = 0.0
    mass = 0.5 + torch.rand(size, batch, generator=generator, dtype=torch.float64)
    return mass + coupling + coupling.roll(1, 0), coupling


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 12, 17, 31, 64, 75])
def test_agrees_with_a_dense_solve(size, closed, generator):
    diagonal, coupling = ring(size, 3, 50.0, generator, closed)
    sides = torch.randn(size, 3, generator=generator, dtype=torch.float64)
    solution = solve_ring(factor_ring(diagonal, coupling), sides)
    for sample in range(3):
        expected = torch.linalg.solve(dense(diagonal[:, sample], coupling[:, sample]), sides[:, sample])
        torch.testing.assert_close(solution[:, sample], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("size", [128, 100, 75])
@pytest.mark.parametrize("stiffness", [1e-3, 0.05, 0.4])
def test_stopping_early_costs_nothing_when_couplings_are_weak(stiffness, size, generator):
    diagonal, coupling = ring(size, 4, stiffness, generator, True)
    levels = levels_needed(float((coupling / torch.minimum(diagonal, diagonal.roll(-1, 0))).max()))
    assert levels is not None
    assert levels < 7
    sides = torch.randn(size, 4, generator=generator, dtype=torch.float64)
    short = solve_ring(factor_ring(diagonal, coupling, num_levels=levels), sides)
    full = solve_ring(factor_ring(diagonal, coupling), sides)
    torch.testing.assert_close(short, full, rtol=1e-14, atol=1e-14)


def test_strong_couplings_are_eliminated_to_the_end():
    assert levels_needed(0.4999) is None
    assert levels_needed(float("nan")) is None
    assert levels_needed(0.0) == 0
