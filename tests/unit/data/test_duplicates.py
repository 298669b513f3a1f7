"""Copies of trajectories are found by content, whatever their place."""

from __future__ import annotations

import numpy as np
import pytest

from spectrakan.data.split import duplicate_groups
from spectrakan.fields import FieldSpec, Grid, Trajectories


def frames(values: np.ndarray, **more: object) -> Trajectories:
    grid = Grid.uniform(values.shape[2:-1])
    fields = tuple(FieldSpec(f"f{i}") for i in range(values.shape[-1]))
    return Trajectories(values, grid, np.arange(float(values.shape[1])), fields, **more)


def test_copies_share_a_group_and_a_late_difference_separates():
    values = np.random.default_rng(0).normal(size=(5, 3, 4, 2))
    values[3] = values[1]
    values[4] = values[1]
    values[4, -1, -1, -1] += 1e-12  # the same first frame, another end
    assert duplicate_groups(frames(values)) == ((0,), (1, 3), (2,), (4,))


def test_the_sign_of_zero_makes_no_difference():
    values = np.zeros((2, 1, 4, 1))
    values[1] = -0.0
    assert duplicate_groups(frames(values)) == ((0, 1),)


def test_parameters_make_equal_fields_different_samples():
    values = np.ones((3, 2, 4, 1))
    made = frames(values, params=np.array([[1.0], [2.0], [1.0]]), param_names=("nu",))
    assert duplicate_groups(made) == ((0, 2), (1,))


def test_a_steady_sample_is_its_input_and_its_solution():
    inputs = np.ones((3, 1, 4, 1))
    values = np.array([1.0, 1.0, 2.0]).reshape(3, 1, 1, 1) * np.ones((3, 1, 4, 1))
    made = frames(values, inputs=inputs, input_fields=(FieldSpec("a"),))
    assert duplicate_groups(made) == ((0, 1), (2,))


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_stored_types_are_compared_as_stored(dtype: type):
    values = np.arange(8).reshape(2, 1, 4, 1).astype(dtype)
    assert duplicate_groups(frames(np.concatenate([values, values]))) == ((0, 2), (1, 3))
