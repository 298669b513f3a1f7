"""MATLAB files: version 5 and version 7.3 of one content give one set."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io

from spectrakan.data import load_dataset
from spectrakan.data.container import read_whole
from spectrakan.data.formats.mat import open_mat

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
    found = load_dataset(path).every(2)
    expected = arrays["u"].transpose(0, 3, 1, 2)[:, ::2, ..., None]
    np.testing.assert_array_equal(np.asarray(found.values), expected)
    assert found.times.tolist() == [1.0, 3.0]


def test_initial_to_final_state_in_one_dimension(tmp_path: Path):
    arrays = {"a": RNG.standard_normal((3, 16)), "u": RNG.standard_normal((3, 16))}
    scipy.io.savemat(tmp_path / "burgers.mat", arrays)
    found = load_dataset(tmp_path / "burgers.mat")
    np.testing.assert_array_equal(np.asarray(found.values)[:, 0, :, 0], arrays["u"])
    np.testing.assert_array_equal(np.asarray(found.inputs)[:, 0, :, 0], arrays["a"])


def test_what_cells_refer_to_changes_nothing(tmp_path: Path):
    arrays = {"coeff": RNG.standard_normal((3, 6, 5)), "sol": RNG.standard_normal((3, 6, 5))}
    save_73(tmp_path / "darcy.mat", {**arrays, "#refs#/a": np.arange(3.0)})
    found = np.asarray(load_dataset(tmp_path / "darcy.mat").values)
    np.testing.assert_array_equal(found[:, 0, ..., 0], arrays["sol"])


KINDS = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_those_that_scipy_reads(tmp_path: Path, kind: str, packed: bool):
    path = tmp_path / "set.mat"
    arrays = {
        "plane": (RNG.standard_normal((7, 5)) * 50).astype(kind),
        "a_name_that_is_quite_long": (RNG.standard_normal((2, 3, 4, 5)) * 50).astype(kind),
        "scalar": np.array(3, kind),
        "text": "left out",
        "cell": np.array([1, "a"], dtype=object),
        "structure": {"inner": np.arange(3)},
        "complex": np.array([1j, 2.0]),
        "last": (RNG.standard_normal((3, 1)) * 50).astype(kind),
    }
    scipy.io.savemat(path, arrays, do_compression=packed)
    expected = scipy.io.loadmat(path)
    found = open_mat(path).arrays
    assert set(found) == {"plane", "a_name_that_is_quite_long", "scalar", "last"}
    for name, source in found.items():
        assert source.dtype == expected[name].dtype
        np.testing.assert_array_equal(read_whole(source), expected[name])


def test_big_endian_files_are_read_too(tmp_path: Path):
    """One array of two doubles, written out byte by byte as a big-endian machine does."""
    parts = [
        struct.pack(">IIII", 6, 8, 6, 0),  # flags: class double
        struct.pack(">IIii", 5, 8, 1, 2),  # sizes
        struct.pack(">HH4s", 1, 1, b"u"),  # the name, in the short form
        struct.pack(">IIdd", 9, 16, 1.5, -2.0),
    ]
    body = b"".join(parts)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "big.mat").write_bytes(header + struct.pack(">II", 14, len(body)) + body)
    assert read_whole(open_mat(tmp_path / "big.mat").arrays["u"]).tolist() == [[1.5, -2.0]]
