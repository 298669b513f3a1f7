"""Customary names: what is taken for granted, and what is not."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import torch

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
        ({"values": VALUES, "fields": np.array(["a"])}, "'fields': expected 2 texts, found shape"),
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


PARAMS = np.array([[1.0, 10.0], [2.0, 20.0]])


@pytest.mark.parametrize("kind", ["npz", "pt", "h5", "mat"])
@pytest.mark.parametrize("named", [True, False])
def test_parameters_are_read_from_every_kind_of_file(tmp_path: Path, kind: str, named: bool):
    path = tmp_path / f"set.{kind}"
    names = ["Re", "Ma"]
    if kind == "npz":
        np.savez(path, values=VALUES, params=PARAMS, **({"param_names": np.array(names)} if named else {}))
    elif kind == "pt":
        tensors = {"values": torch.from_numpy(VALUES), "params": torch.from_numpy(PARAMS)}
        torch.save(tensors | ({"param_names": names} if named else {}), path)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file["values"], file["params"] = VALUES, PARAMS
            if named:
                file["param_names"] = names
    else:
        scipy.io.savemat(path, {"values": VALUES, "params": PARAMS})
        named = False  # text of MATLAB files is left out
    found = load_dataset(path)
    np.testing.assert_array_equal(found.params, PARAMS)
    assert found.param_names == (("Re", "Ma") if named else ("param_0", "param_1"))


def test_one_parameter_may_be_a_list_and_stands_beside_any_pair(tmp_path: Path):
    pair = VALUES[:, 0, :, :, 0]
    np.savez(tmp_path / "set.npz", x=pair, y=2 * pair, params=np.array([0.5, 0.25]), param_names=np.array("nu"))
    found = load_dataset(tmp_path / "set.npz")
    assert found.param_names == ("nu",)
    assert found.params is not None
    assert found.params.tolist() == [[0.5], [0.25]]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (np.ones((3, 2)), r"'params': expected a table of 2 rows, one a sample, found shape \(3, 2\)"),
        (np.array([[1.0], [np.inf]]), r"'params': expected finite numbers, found inf at index 1, 0"),
        (np.array(["a", "b"]), "'params': expected an array of real numbers"),
        (np.ones((2, 2, 2)), "'params': expected a table"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(tmp_path: Path, params: np.ndarray, message: str):
    np.savez(tmp_path / "set.npz", values=VALUES, params=params)
    with pytest.raises(DataFormatError, match=message):
        load_dataset(tmp_path / "set.npz")


def test_units_and_boundary_are_kept(tmp_path: Path):
    more = {"fields": np.array(["rho", "p"]), "units": np.array(["kg/m3", "Pa"])}
    np.savez(tmp_path / "set.npz", values=VALUES, boundary=np.array(["periodic", "wall"]), **more)
    found = load_dataset(tmp_path / "set.npz")
    assert [(spec.name, spec.unit) for spec in found.fields] == [("rho", "kg/m3"), ("p", "Pa")]
    assert found.grid.boundary == ("periodic", "wall")
    np.savez(tmp_path / "set.npz", values=VALUES, boundary=np.array(["periodic", "open"]))
    with pytest.raises(DataFormatError, match="'boundary'"):
        load_dataset(tmp_path / "set.npz")


FLAT = np.random.default_rng(1).standard_normal((5, 3, 6, 7))


def test_a_forgotten_channel_axis_is_refused_with_both_readings(tmp_path: Path):
    np.savez(tmp_path / "set.npz", values=FLAT)
    message = r"7 fields in 1D or one field in 2D without a channel axis; store an array 'fields'.* x, y .*mapping"
    with pytest.raises(DataFormatError, match=message):
        load_dataset(tmp_path / "set.npz")
    torch.save(torch.from_numpy(FLAT), tmp_path / "set.pt")
    with pytest.raises(DataFormatError, match="without a channel axis"):
        load_dataset(tmp_path / "set.pt")


@pytest.mark.parametrize(
    ("more", "dims"),
    [
        ({"fields": np.array(["heat"])}, 2),
        ({"fields": np.array("heat")}, 2),
        ({"x": np.arange(6.0), "y": np.arange(7.0)}, 2),
        ({"fields": np.array([f"u{n}" for n in range(7)])}, 1),
        ({"x": np.arange(6.0)}, 1),
    ],
)
def test_names_or_coordinates_decide_whether_there_is_a_channel_axis(
    tmp_path: Path, more: dict[str, np.ndarray], dims: int
):
    np.savez(tmp_path / "set.npz", values=FLAT, **more)
    found = load_dataset(tmp_path / "set.npz")
    assert len(found.grid.shape) == dims
    np.testing.assert_array_equal(np.asarray(found.values), FLAT[..., None] if dims == 2 else FLAT)


@pytest.mark.parametrize(
    "more",
    [
        {"fields": np.array(["a", "b"])},
        {"fields": np.array(["a"]), "x": np.arange(6.0)},
        {"fields": np.array([f"u{n}" for n in range(7)]), "x": np.arange(6.0), "y": np.arange(7.0)},
    ],
)
def test_names_and_coordinates_that_contradict_the_shape_are_refused(tmp_path: Path, more: dict[str, np.ndarray]):
    np.savez(tmp_path / "set.npz", values=FLAT, **more)
    with pytest.raises(DataFormatError, match="'values': expected axes"):
        load_dataset(tmp_path / "set.npz")


def test_errors_name_a_remedy_that_an_installed_user_has(tmp_path: Path):
    np.savez(tmp_path / "set.npz", solution=VALUES)
    with pytest.raises(DataFormatError, match="`spectrakan check --explain-mapping` shows how") as caught:
        load_dataset(tmp_path / "set.npz")
    assert "docs/" not in str(caught.value)
