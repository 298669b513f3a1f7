"""Customary names: what is taken for granted, and what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spectrakan.data import load_dataset
from spectrakan.errors import DataFormatError

VALUES = np.random.default_rng(0).standard_normal((2, 3, 6, 5, 2))
X = (np.arange(6) + 0.5) / 3 - 1
Y = (np.arange(5) + 0.5) / 5


def test_everything_that_can_be_said_by_names(tmp_path: Path):
    more = {"times": np.array([0.0, 0.5, 2.0]), "x": X, "y": Y, "fields": np.array(["rho", "p"])}
    np.savez(tmp_path / "set.npz", values=VALUES, **more)
    found = load_dataset(tmp_path / "set.npz")
    np.testing.assert_array_equal(np.asarray(found.values), VALUES)
    assert [spec.name for spec in found.fields] == ["rho", "p"]
    assert found.times.tolist() == [0.0, 0.5, 2.0]
    assert found.grid.bounds == ((-1.0, 1.0), (0.0, 1.0))


def test_values_alone_lie_on_the_unit_box(tmp_path: Path):
    np.savez(tmp_path / "set.npz", values=VALUES)
    found = load_dataset(tmp_path / "set.npz")
    assert [spec.name for spec in found.fields] == ["u0", "u1"]
    assert found.times.tolist() == [0.0, 0.5, 1.0]
    assert found.grid.bounds == ((0.0, 1.0), (0.0, 1.0))


def test_steady_values_with_inputs(tmp_path: Path):
    np.savez(tmp_path / "set.npz", values=VALUES[:, :1], inputs=VALUES[:, 1:2, ..., :1])
    found = load_dataset(tmp_path / "set.npz")
    np.testing.assert_array_equal(np.asarray(found.inputs), VALUES[:, 1:2, ..., :1])
    assert [spec.name for spec in found.input_fields] == ["u"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"values": VALUES[0, 0]}, r"'values': expected axes \(sample, time, x\[, y\[, z\]\], channel\)"),
        ({"values": VALUES, "x": X[:3], "y": Y}, "'x': expected 6 cell centres along x, found 3"),
        ({"values": VALUES, "times": X}, "'times': expected one time for each of 3 frames, found 6"),
        ({"values": VALUES, "fields": np.array(["a"])}, "a name for each of 2 channels"),
        ({"values": VALUES, "inputs": VALUES}, "contradict each other: inputs must have shape"),
        ({"x": VALUES, "y": VALUES}, "no known meaning"),
        ({"coeff": VALUES[0, 0], "sol": VALUES[0, 1, :3]}, "contradict each other"),
        ({"solution": VALUES}, "no known meaning"),
        ({}, "no arrays"),
    ],
)
def test_what_cannot_be_taken_for_granted_is_refused(tmp_path: Path, arrays: dict[str, np.ndarray], message: str):
    np.savez(tmp_path / "set.npz", **arrays)
    with pytest.raises(DataFormatError, match=message):
        load_dataset(tmp_path / "set.npz")
