"""MATLAB files as containers: version 5 by a reader of its numeric arrays, version 7.3 as HDF5.

Version 5 is a header of 128 bytes and then elements: a tag (type, number of bytes) and a body, padded to 8
bytes. An array is an element that holds four others: flags, sizes, name and numbers in column-major order.
The reader is written out here because the usual one is compiled code that damaged files can crash.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, mismatch
from spectrakan.data.formats.hdf5 import open_hdf5
from spectrakan.data.source import HeldSource, Source

HEADER_5 = b"MATLAB 5.0 MAT-file"
HEADER_73 = b"MATLAB 7.3 MAT-file"

_HEADER_BYTES = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
"""Types of elements that hold numbers."""
_NUMERIC_CLASSES = range(6, 16)
"""Classes of arrays from double to uint64; others are cells, structures, text and sparse matrices."""
_COMPLEX = 0x800


def open_mat(path: Path) -> Container:
    """The full real arrays of a version 5 file, held in memory; structures and text are left out."""
    arrays: dict[str, Source] = {}
    with decoding(path, kind="MATLAB 5"):
        content = path.read_bytes()
        mark = content[_HEADER_BYTES - 2 : _HEADER_BYTES]
        if mark not in {b"IM", b"MI"}:
            raise mismatch(path, "", "a mark of byte order in the header", f"{mark!r}")
        order = "<" if mark == b"IM" else ">"
        for kind, body in _elements(memoryview(content)[_HEADER_BYTES:], order):
            if kind == _COMPRESSED:
                inner = list(_elements(memoryview(zlib.decompress(body)), order))
                found = [_array(part, order) for inner_kind, part in inner if inner_kind == _MATRIX]
            else:
                found = [_array(body, order)] if kind == _MATRIX else []
            arrays |= {name: HeldSource(array) for name, array in filter(None, found)}
    return Container(path, "MATLAB 5", arrays)


def open_mat73(path: Path) -> Container:
    """The datasets of a version 7.3 file, read lazily; HDF5 stores MATLAB's axes in reverse order."""
    container = open_hdf5(path, reverse=True)
    arrays = {name: source for name, source in container.arrays.items() if not name.startswith("#")}
    return Container(path, "MATLAB 7.3", arrays, container.attributes, faults=container.faults)


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Types and bodies of the elements that stand one after another."""
    place = 0
    while place < len(content):
        if len(content) - place < 8:
            raise ValueError(f"{len(content) - place} bytes where an element should begin")
        first, size = (int(number) for number in np.frombuffer(content[place : place + 8], f"{order}u4"))
        start = place + 8
        if first >> 16:  # the short form: both numbers in one word, up to four bytes in the other
            first, size, start = first & 0xFFFF, first >> 16, place + 4
            end = place + 8
            if size > 4:
                raise ValueError(f"a short element of {size} bytes")
        else:
            end = start + size if first == _COMPRESSED else start + -(-size // 8) * 8
        if start + size > len(content):
            raise ValueError(f"an element of {size} bytes where {len(content) - start} are left")
        yield first, content[start : start + size]
        place = end


def _array(body: memoryview, order: str) -> tuple[str, npt.NDArray[np.generic]] | None:
    """Name and numbers of an array; None where it holds something else than real numbers."""
    parts = _elements(body, order)
    flags = _numbers(*next(parts), order)
    word = int(flags[0])
    if word & 0xFF not in _NUMERIC_CLASSES or word & _COMPLEX:
        return None
    shape = tuple(int(size) for size in _numbers(*next(parts), order))
    name = bytes(next(parts)[1]).decode("utf-8")
    numbers = _numbers(*next(parts), order)
    if len(shape) < 2 or min(shape) < 0 or math.prod(shape) != numbers.size:
        raise ValueError(f"array '{name}' of shape {shape} has {numbers.size} numbers")
    return name, numbers.reshape(shape, order="F")


def _numbers(kind: int, body: memoryview, order: str) -> npt.NDArray[np.generic]:
    if kind not in _NUMBERS:
        raise ValueError(f"an element of type {kind} where numbers should be")
    return np.frombuffer(body, f"{order}{_NUMBERS[kind]}")
