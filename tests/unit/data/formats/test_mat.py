"""MATLAB files: version 5 and version 7.3 of one content give one set."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io

from spectrakan.data import load_dataset

RNG = np.random.default_rng(0)


def save_73(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """What MATLAB writes: a user block with a text, then HDF5 with all axes in reverse."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = array.T
            file[name].attrs["MATLAB_class"] = np.bytes_(b"double")
    with path.open("rb+") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))


@pytest.mark.parametrize("version", ["5", "5 compressed", "7.3"])
def test_coefficient_and_solution(tmp_path: Path, version: str):
    arrays = {"coeff": RNG.standard_normal((3, 6, 5)), "sol": RNG.standard_normal((3, 6, 5))}
    path = tmp_path / "darcy.mat"
    if version == "7.3":
        save_73(path, arrays)
    else:
        scipy.io.savemat(path, arrays, do_compression="compressed" in version)
    found = load_dataset(path)
    np.testing.assert_array_equal(np.asarray(found.values)[:, 0, ..., 0], arrays["sol"])
    np.testing.assert_array_equal(np.asarray(found.inputs)[:, 0, ..., 0], arrays["coeff"])


@pytest.mark.parametrize("version", ["5", "7.3"])
def test_states_with_time_last(tmp_path: Path, version: str):
    arrays = {
        "a": RNG.standard_normal((3, 6, 5)),
        "u": RNG.standard_normal((3, 6, 5, 4)),
        "t": np.arange(1.0, 5.0)[None],
    }
    path = tmp_path / "flow.mat"
    save_73(path, arrays) if version == "7.3" else scipy.io.savemat(path, arrays)
    found = load_dataset(path, stride_time=2)
    expected = arrays["u"].transpose(0, 3, 1, 2)[:, ::2, ..., None]
    np.testing.assert_array_equal(np.asarray(found.values), expected)
    assert found.times.tolist() == [1.0, 3.0]


def test_initial_to_final_state_in_one_dimension(tmp_path: Path):
    arrays = {"a": RNG.standard_normal((3, 16)), "u": RNG.standard_normal((3, 16))}
    scipy.io.savemat(tmp_path / "burgers.mat", arrays)
    found = load_dataset(tmp_path / "burgers.mat")
    np.testing.assert_array_equal(np.asarray(found.values)[:, 0, :, 0], arrays["u"])
    np.testing.assert_array_equal(np.asarray(found.inputs)[:, 0, :, 0], arrays["a"])
