"""Sensors at fixed places, read from grids of any size; places of cells."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from spectrakan.fields import Grid
from spectrakan.nn.axis import axes_of, uniform_axis
from spectrakan.nn.embedding import cell_shares, read_sensors


def test_a_finer_grid_is_averaged_and_a_coarser_one_joined_by_lines():
    fine = torch.arange(8).double().view(1, 1, 8, 1)
    assert read_sensors(fine, [uniform_axis(8, False)], (4,)).flatten().tolist() == [0.5, 2.5, 4.5, 6.5]
    assert read_sensors(fine, [uniform_axis(8, False)], (8,)).flatten().tolist() == list(range(8))
    coarse = torch.tensor([0.0, 1.0]).double().view(1, 1, 2, 1)
    ends = read_sensors(coarse, [uniform_axis(2, False)], (4,)).flatten().tolist()
    assert ends == pytest.approx([0.0, 0.25, 0.75, 1.0])
    wrapped = read_sensors(coarse, [uniform_axis(2, True)], (4,)).flatten().tolist()
    assert wrapped == pytest.approx([0.25, 0.25, 0.75, 0.75])


def test_sensors_converge_to_the_cell_means_of_the_function_with_second_order():
    """The mean of sin(pi x) over [a, b] is (cos pi a - cos pi b) / (pi (b - a))."""
    edges = torch.linspace(0, 1, 6, dtype=torch.float64)
    exact = (torch.cos(math.pi * edges[:-1]) - torch.cos(math.pi * edges[1:])) / (math.pi * edges.diff())
    errors = []
    for cells in (20, 40, 80, 160):
        x = (torch.arange(cells).double() + 0.5) / cells
        seen = read_sensors(torch.sin(math.pi * x).view(1, 1, -1, 1), [uniform_axis(cells, False)], (5,))
        errors.append(float((seen.flatten() - exact).abs().max()))
    slopes = [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    assert slopes == pytest.approx([2.0] * 3, abs=0.05)


def test_uneven_cells_count_by_their_width():
    grid = Grid.from_edges([torch.tensor([0.0, 0.25, 0.5, 0.75, 0.875, 1.0])])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 6.0]).double().view(1, 1, 5, 1)
    seen = read_sensors(values, axes_of((5,), grid, [False]), (2,)).flatten().tolist()
    assert seen == pytest.approx([1.5, (3 + 3 + 4 + 6) / 4])


def test_shares_of_cells():
    grid = Grid.latitude_longitude(torch.linspace(-75, 75, 6), torch.arange(0, 360, 90.0))
    shares = cell_shares(axes_of((6, 4), grid, [False, True]), torch.zeros((), dtype=torch.float64))
    assert torch.allclose(shares, grid.volumes().flatten())
