"""Grids from stored centres: exact where the centres are even, faithful where they are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import roots_legendre

from spectrakan.data.files import stride_grid
from spectrakan.data.formats.mapping import increasing, stored_times
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.fields import Grid
from spectrakan.fields.grid import closes_circle, globe_boundary, grid_around


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
    with pytest.raises(ConfigError, match="every 8-th cell"):
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


def gaussian_latitudes(size: int) -> np.ndarray:
    return np.degrees(np.arcsin(roots_legendre(size)[0]))


def globe_grid(latitude: np.ndarray, longitude: np.ndarray) -> Grid:
    return grid_around([latitude, longitude], globe_boundary(("lat", "lon"), longitude), latitude=0)


def circle(size: int) -> np.ndarray:
    return 360.0 / size * np.arange(size)


def mean_of_sine_power(latitude: np.ndarray, power: int) -> float:
    grid = globe_grid(latitude, circle(8))
    sines = torch.sin(torch.deg2rad(grid.coordinates[0]))
    return float((grid.volumes() * sines[:, None] ** power).sum())


@pytest.mark.parametrize("power", [0, 2, 4, 20, 62])
def test_means_over_gaussian_latitudes_are_exact(power: int):
    assert mean_of_sine_power(gaussian_latitudes(32), power) == pytest.approx(1 / (power + 1), abs=1e-13)


def test_latitudes_stored_in_single_precision_are_still_known_as_gaussian():
    stored = gaussian_latitudes(32).astype(np.float32).astype(np.float64)
    assert mean_of_sine_power(stored, 2) == pytest.approx(1 / 3, abs=1e-7)
    np.testing.assert_allclose(globe_grid(stored, circle(64)).weights[0], roots_legendre(32)[1] / 2)


def test_faces_between_gaussian_latitudes_cut_off_their_areas_and_end_at_the_poles():
    grid = globe_grid(gaussian_latitudes(32), circle(64))
    faces = grid.edges[0].numpy()
    assert (faces[0], faces[-1]) == pytest.approx((-90.0, 90.0))
    assert bool(((faces[:-1] < grid.coordinates[0].numpy()) & (grid.coordinates[0].numpy() < faces[1:])).all())
    np.testing.assert_allclose(np.diff(np.sin(np.radians(faces))) / 2, grid.weights[0], atol=1e-15)


def test_means_over_equal_steps_of_latitude_converge_with_second_order():
    errors = [abs(mean_of_sine_power(np.linspace(-90, 90, size), 2) - 1 / 3) for size in (19, 37, 73)]
    slopes = np.diff(np.log(errors)) / np.log(0.5)
    assert np.all(slopes > 1.9)
    assert errors[-1] < 1e-3


def test_a_region_does_not_wrap_and_has_the_areas_of_its_own_cells():
    latitude, longitude = np.arange(30.0, 56.0, 2.5), np.arange(-15.0, 16.0, 2.5)
    grid = globe_grid(latitude, longitude)
    assert grid.boundary == ()
    south, north = np.radians(latitude - 1.25), np.radians(latitude + 1.25)
    bands = np.sin(north) - np.sin(south)
    np.testing.assert_allclose(grid.weights[0], bands / bands.sum(), rtol=1e-12)
    np.testing.assert_allclose(grid.weights[1], np.full(13, 1 / 13), rtol=1e-12)


def test_only_a_whole_circle_is_periodic():
    assert globe_grid(np.array([-45.0, 45.0]), circle(144)).boundary == ("wall", "periodic")
    assert closes_circle(circle(64) - 180.0)
    assert not closes_circle(circle(64)[:-1])
