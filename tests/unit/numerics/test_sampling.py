"""Lines between centres and means over cells, against numpy's interpolation and hand-worked cells."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spectrakan.numerics.resample import along_axis, line_matrix, transfer_matrix


def sorted_places(count: int, seed: int) -> torch.Tensor:
    return torch.tensor(np.sort(np.random.default_rng(seed).uniform(0, 1, count)))


@pytest.mark.parametrize("periodic", [False, True])
def test_lines_are_those_of_numpy_on_uneven_centres(periodic):
    centres, places = sorted_places(7, 0), torch.linspace(0, 1, 41, dtype=torch.float64)
    values = np.random.default_rng(1).normal(size=7)
    ours = line_matrix(centres, places, periodic=periodic).numpy() @ values
    theirs = np.interp(places.numpy(), centres.numpy(), values, period=1.0 if periodic else None)
    assert np.allclose(ours, theirs, atol=1e-12)


def test_one_centre_says_the_same_everywhere():
    matrix = line_matrix(torch.tensor([0.5]).double(), torch.linspace(0, 1, 5).double(), periodic=True)
    assert torch.allclose(matrix, torch.ones(5, 1).double())


def test_onto_fewer_cells_means_and_onto_more_lines():
    edges = torch.linspace(0, 1, 7, dtype=torch.float64)
    fewer = transfer_matrix(edges, torch.tensor([0, 0.25, 1.0]).double(), periodic=False)
    # Cell [0, 1/4] holds all of [0, 1/6] and half of [1/6, 1/3].
    assert torch.allclose(fewer[0], torch.tensor([2 / 3, 1 / 3, 0, 0, 0, 0]).double())
    assert torch.equal(transfer_matrix(edges, edges, periodic=False), torch.eye(6).double())
    more = transfer_matrix(edges, torch.linspace(0, 1, 13, dtype=torch.float64), periodic=False)
    straight = 3 * (torch.arange(6).double() + 0.5) / 6 - 1
    finer = 3 * (torch.arange(12).double() + 0.5) / 12 - 1
    assert torch.allclose((more @ straight)[1:-1], finer[1:-1])


@pytest.mark.parametrize("other", [3, 5, 6, 11])
@pytest.mark.parametrize("periodic", [False, True])
def test_constants_stay(other, periodic):
    edges = torch.cat([torch.zeros(1), sorted_places(5, 3), torch.ones(1)])
    matrix = transfer_matrix(edges, torch.linspace(0, 1, other + 1, dtype=torch.float64), periodic=periodic)
    assert torch.allclose(matrix.sum(1), torch.ones(other).double())


def test_along_axis_is_the_contraction_of_that_axis(generator):
    values = torch.randn(2, 3, 4, 5, dtype=torch.float64, generator=generator)
    matrix = torch.randn(7, 4, dtype=torch.float64, generator=generator)
    assert torch.allclose(along_axis(matrix, values, 2), torch.einsum("mn,abnc->abmc", matrix, values))
