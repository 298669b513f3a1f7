from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import roots_legendre

from spectrakan.data.globe import closes_circle, globe_grid


def gaussian_latitudes(size: int) -> np.ndarray:
    return np.degrees(np.arcsin(roots_legendre(size)[0]))


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


def test_a_region_has_open_sides_and_the_areas_of_its_own_cells():
    latitude, longitude = np.arange(30.0, 56.0, 2.5), np.arange(-15.0, 16.0, 2.5)
    grid = globe_grid(latitude, longitude)
    assert grid.boundary == ("outflow", "outflow")
    south, north = np.radians(latitude - 1.25), np.radians(latitude + 1.25)
    bands = np.sin(north) - np.sin(south)
    np.testing.assert_allclose(grid.weights[0], bands / bands.sum(), rtol=1e-12)
    np.testing.assert_allclose(grid.weights[1], np.full(13, 1 / 13), rtol=1e-12)


def test_only_a_whole_circle_is_periodic():
    assert globe_grid(np.array([-45.0, 45.0]), circle(144)).boundary == ("wall", "periodic")
    assert closes_circle(circle(64) - 180.0)
    assert not closes_circle(circle(64)[:-1])
