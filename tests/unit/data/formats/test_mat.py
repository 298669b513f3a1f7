"""MATLAB files of version 7.3 are HDF5 with reversed axes."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io

from spectrakan.data import load_dataset
from spectrakan.errors import DataFormatError

RNG = np.random.default_rng(0)


def save_73(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """What MATLAB writes: a user block with a text, then HDF5 with all axes in reverse."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = array.T
            file[name].attrs["MATLAB_class"] = np.bytes_(b"double")
    with path.open("rb+") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))


def test_coefficient_and_solution(tmp_path: Path):
    arrays = {"coeff": RNG.standard_normal((3, 6, 5)), "sol": RNG.standard_normal((3, 6, 5))}
    path = tmp_path / "darcy.mat"
    save_73(path, arrays)
    found = load_dataset(path)
    np.testing.assert_array_equal(np.asarray(found.values)[:, 0, ..., 0], arrays["sol"])
    np.testing.assert_array_equal(np.asarray(found.inputs)[:, 0, ..., 0], arrays["coeff"])


def test_states_with_time_last(tmp_path: Path):
    arrays = {
        "a": RNG.standard_normal((3, 6, 5)),
        "u": RNG.standard_normal((3, 6, 5, 4)),
        "t": np.arange(1.0, 5.0)[None],
    }
    path = tmp_path / "flow.mat"
    save_73(path, arrays)
    found = load_dataset(path).every(2)
    expected = arrays["u"].transpose(0, 3, 1, 2)[:, ::2, ..., None]
    np.testing.assert_array_equal(np.asarray(found.values), expected)
    assert found.times.tolist() == [1.0, 3.0]


def test_initial_to_final_state_in_one_dimension(tmp_path: Path):
    arrays = {"a": RNG.standard_normal((3, 16)), "u": RNG.standard_normal((3, 16))}
    save_73(tmp_path / "burgers.mat", arrays)
    found = load_dataset(tmp_path / "burgers.mat")
    np.testing.assert_array_equal(np.asarray(found.values)[:, 0, :, 0], arrays["u"])
    np.testing.assert_array_equal(np.asarray(found.inputs)[:, 0, :, 0], arrays["a"])


def test_what_cells_refer_to_changes_nothing(tmp_path: Path):
    arrays = {"coeff": RNG.standard_normal((3, 6, 5)), "sol": RNG.standard_normal((3, 6, 5))}
    save_73(tmp_path / "darcy.mat", {**arrays, "#refs#/a": np.arange(3.0)})
    found = np.asarray(load_dataset(tmp_path / "darcy.mat").values)
    np.testing.assert_array_equal(found[:, 0, ..., 0], arrays["sol"])


def test_version_5_is_refused_with_a_remedy(tmp_path: Path):
    scipy.io.savemat(tmp_path / "old.mat", {"u": np.zeros((2, 3))})
    with pytest.raises(DataFormatError, match=r"MATLAB 5 file; save it with -v7\.3, or give .*loadmat"):
        load_dataset(tmp_path / "old.mat")
