"""Grids from stored centres: exact where the centres are even, faithful where they are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.data.axes import grid_around, increasing, stored_times, stride_grid, unit_times
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.fields import Grid


@given(
    st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (-2.5, 2.5), (0.0, 2 * np.pi), (10.0, 12.5)]),
    st.integers(2, 1024),
)
def test_single_precision_centres_give_the_exact_domain(bounds: tuple[float, float], count: int):
    exact = Grid.uniform((count,), (bounds,))
    stored = exact.coordinates[0].numpy().astype(np.float32).astype(np.float64)
    grid = grid_around([stored], ("periodic",))
    np.testing.assert_array_equal(grid.coordinates[0].numpy(), stored)
    assert grid.is_uniform()
    assert grid.boundary == ("periodic",)
    if bounds[1] != 2 * np.pi:
        assert grid.bounds == (bounds,)
    else:
        np.testing.assert_allclose(grid.bounds[0], bounds, atol=1e-6)


def test_uneven_centres_are_kept_uneven():
    centres = np.array([0.0, 1.0, 3.0, 7.0])
    grid = grid_around([centres])
    np.testing.assert_allclose(grid.edges[0].numpy(), [-0.5, 0.5, 2.0, 5.0, 9.0])
    assert not grid.is_uniform()


def test_latitudes_are_weighted_by_the_sine():
    latitude = np.linspace(-87.5, 87.5, 36)
    grid = grid_around([latitude, np.arange(0.0, 360.0, 5.0)], ("wall", "periodic"), latitude=0)
    faces = np.deg2rad(np.linspace(-90, 90, 37))
    np.testing.assert_allclose(grid.weights[0].numpy(), np.diff(np.sin(faces)) / 2, rtol=1e-12)
    coarse = stride_grid(grid, 2)
    expected = grid.weights[0][::2] / grid.weights[0][::2].sum()
    torch.testing.assert_close(coarse.weights[0], expected)


@given(st.integers(1, 5), st.integers(20, 40))
def test_striding_keeps_every_nth_centre_and_equal_cells(stride: int, count: int):
    grid = Grid.uniform((count, 2 * count), ((0.0, 1.0), (-1.0, 1.0)), ("wall", "periodic"))
    coarse = stride_grid(grid, stride)
    for old, new in zip(grid.coordinates, coarse.coordinates, strict=True):
        assert torch.equal(new, old[::stride])
    assert coarse.is_uniform()
    assert coarse.boundary == grid.boundary


def test_a_stride_that_leaves_one_cell_is_refused():
    with pytest.raises(ConfigError, match="stride_space 8"):
        stride_grid(Grid.uniform((8,)), 8)


def test_decreasing_coordinates_are_turned():
    turned, flipped = increasing(np.array([3.0, 2.0, 0.0]))
    assert turned.tolist() == [0.0, 2.0, 3.0]
    assert flipped
    assert not increasing(np.array([0.0, 1.0]))[1]


def test_one_time_too_many_is_dropped_and_other_lengths_are_refused():
    place = Path("file.h5")
    stored = np.linspace(0.0, 1.01, 102)
    assert stored_times(place, "t", stored, 101).tolist() == stored[:101].tolist()
    for wrong in (stored[:100], np.linspace(0, 1, 103)):
        with pytest.raises(DataFormatError, match=r"'file.h5', 't': expected one time for each of 101 frames"):
            stored_times(place, "t", wrong, 101)
    with pytest.raises(DataFormatError, match=r"increasing times, found 2\.0 before 1\.0 at index 1"):
        stored_times(place, "t", np.array([0.0, 2.0, 1.0]), 3)


def test_unknown_times_spread_over_the_unit_interval():
    assert unit_times(5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert unit_times(1).tolist() == [0.0]
