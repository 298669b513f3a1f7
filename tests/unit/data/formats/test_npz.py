"""npz: checked by CRC, never unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from spectrakan.data import load_dataset
from spectrakan.errors import DataFormatError

VALUES = np.random.default_rng(0).standard_normal((3, 4, 6, 5, 2))


@pytest.mark.parametrize("order", ["C", "F"])
def test_both_orders_of_numbers_are_read(tmp_path: Path, order: str):
    np.savez(tmp_path / "set.npz", values=np.asarray(VALUES, order=order))  # type: ignore[call-overload]
    np.testing.assert_array_equal(np.asarray(load_dataset(tmp_path / "set.npz").values), VALUES)


def test_compressed_members_are_read_too(tmp_path: Path):
    np.savez_compressed(tmp_path / "set.npz", values=VALUES)
    np.testing.assert_array_equal(np.asarray(load_dataset(tmp_path / "set.npz").values), VALUES)


def test_a_flipped_bit_is_found(tmp_path: Path):
    path = tmp_path / "set.npz"
    np.savez(path, values=VALUES)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=r"'values'.*CRC"):
        load_dataset(path)


def test_a_header_that_promises_more_than_there_is_takes_no_memory(tmp_path: Path):
    path = tmp_path / "set.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("values.npy", "w") as member:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6, 8, 8, 1)}
        np.lib.format.write_array_header_1_0(member, header)
        member.write(bytes(100))
    with pytest.raises(DataFormatError, match=r"'values': expected .* found \d+ bytes"):
        load_dataset(path)


def test_unused_objects_do_no_harm_and_used_ones_are_refused(tmp_path: Path):
    note = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "set.npz", values=VALUES, note=note)
    np.testing.assert_array_equal(np.asarray(load_dataset(tmp_path / "set.npz").values), VALUES)
    np.savez(tmp_path / "bad.npz", values=note)
    with pytest.raises(DataFormatError, match="'values': expected an array of real numbers, found type object"):
        load_dataset(tmp_path / "bad.npz")


def test_a_damaged_name_hides_no_array(tmp_path: Path):
    path = tmp_path / "set.npz"
    np.savez(path, values=VALUES, times=np.array([0.0, 1.0, 2.0, 7.0]))
    head, _, tail = path.read_bytes().rpartition(b"times.npy")  # the name stands a second time at the end
    path.write_bytes(head + b"times.npx" + tail)
    with pytest.raises(DataFormatError, match="File name in directory"):
        load_dataset(path)
