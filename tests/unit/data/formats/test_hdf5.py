from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from spectrakan.data.formats.hdf5 import HEAP, HEAP_HEADER, require_sound_heaps
from spectrakan.errors import DataFormatError


def find_damaged_heap(path: Path) -> int | None:
    """Byte of the damaged heap that the error names."""
    try:
        require_sound_heaps(path)
    except DataFormatError as problem:
        return int(str(problem).split("at byte ")[1].split()[0])
    return None


def write_texts(path: Path, count: int, length: int) -> bytes:
    """A file whose texts of variable length fill one heap or many."""
    rng = np.random.default_rng(count)
    with h5py.File(path, "w") as file:
        file.attrs["first"] = "x"
        texts = ["y" * int(size) for size in rng.integers(1, length, count)]
        file.create_dataset("texts", data=texts, dtype=h5py.string_dtype())
    return path.read_bytes()


@pytest.mark.parametrize(("count", "length"), [(1, 10), (60, 50), (500, 200), (3, 20_000)])
def test_whole_heaps_pass(tmp_path: Path, count: int, length: int):
    content = write_texts(tmp_path / "a.h5", count, length)
    assert HEAP in content
    assert find_damaged_heap(tmp_path / "a.h5") is None


def test_a_heap_deleted_in_parts_passes(tmp_path: Path):
    write_texts(tmp_path / "a.h5", 60, 50)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["texts"][10:40] = "z"
        del file.attrs["first"]
    assert find_damaged_heap(tmp_path / "a.h5") is None


def test_a_flipped_high_bit_in_any_size_is_found(tmp_path: Path):
    content = write_texts(tmp_path / "a.h5", 20, 50)
    start = content.index(HEAP)
    sizes = [start + 8, start + HEAP_HEADER + 8]
    for place in sizes:
        for byte in range(2, 8):
            damaged = bytearray(content)
            damaged[place + byte] ^= 0x80
            (tmp_path / "b.h5").write_bytes(damaged)
            assert find_damaged_heap(tmp_path / "b.h5") == start


def test_a_free_rest_of_no_size_is_found(tmp_path: Path):
    content = bytearray(write_texts(tmp_path / "a.h5", 1, 10))
    start = content.index(HEAP)
    # An object 0 of size 0 would be met again and again.
    content[start + HEAP_HEADER : start + 2 * HEAP_HEADER] = bytes(HEAP_HEADER)
    (tmp_path / "b.h5").write_bytes(content)
    assert find_damaged_heap(tmp_path / "b.h5") == start


def test_a_heap_cut_off_by_the_end_of_the_file_is_found(tmp_path: Path):
    content = write_texts(tmp_path / "a.h5", 20, 50)
    start = content.index(HEAP)
    for size in (start + len(HEAP), start + 100):
        (tmp_path / "b.h5").write_bytes(content[:size])
        assert find_damaged_heap(tmp_path / "b.h5") == start


def test_files_without_a_heap_pass(tmp_path: Path):
    for content in (b"", b"no heap"):
        (tmp_path / "a").write_bytes(content)
        assert find_damaged_heap(tmp_path / "a") is None


def test_files_made_by_others_pass(reference_data: Path):
    files = sorted((reference_data / "pdebench_layout").glob("*.h*5"))
    assert files
    assert all(find_damaged_heap(path) is None for path in files)
