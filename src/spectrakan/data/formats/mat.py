"""MATLAB files as containers: version 5 by a reader of its numeric arrays, version 7.3 as HDF5.

Version 5 is a header of 128 bytes and then elements: a tag (type, number of bytes) and a body, padded to 8
bytes. An array is an element that holds four others: flags, sizes, name and numbers in column-major order.
The reader is written out here because the usual one is compiled code that damaged files can crash.
"""

import math
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, largest_size, mismatch, require_size
from spectrakan.data.formats.hdf5 import open_hdf5
from spectrakan.fields import Source

HEADER_5 = b"MATLAB 5.0 MAT-file"
HEADER_73 = b"MATLAB 7.3 MAT-file"

_HEADER_BYTES = 128
_MATRIX, _COMPRESSED, _LAST_TYPE = 14, 15, 18
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""Types of elements that hold numbers."""
_NUMERIC_CLASSES = range(6, 16)
"""Classes of arrays from double to uint64; others are cells, structures, text and sparse matrices."""
_COMPLEX = 0x800


def open_mat(path: Path) -> Container:
    """The full real arrays of a version 5 file, held in memory; structures and text are left out."""
    arrays: dict[str, Source] = {}
    size = path.stat().st_size
    total = 0
    with decoding(path, kind="MATLAB 5"):
        content = path.read_bytes()
        mark = content[_HEADER_BYTES - 2 : _HEADER_BYTES]
        if mark not in {b"IM", b"MI"}:
            raise mismatch(path, "", "a mark of byte order in the header", f"{mark!r}")
        order = "<" if mark == b"IM" else ">"
        for kind, body in _elements(memoryview(content)[_HEADER_BYTES:], order):
            if kind == _COMPRESSED:
                stream = zlib.decompressobj()
                inflated = stream.decompress(body, largest_size(size) - total + 1)
                total += len(inflated)
                require_size(path, "", total, size)
                if not stream.eof:
                    raise ValueError("a compressed element that does not end")
                kind, body = next(_elements(memoryview(inflated), order))  # it holds one element
            if kind == _MATRIX and (found := _array(body, order)) is not None:
                arrays[found[0]] = found[1]
    return Container(path, "MATLAB 5", arrays)


def open_mat73(path: Path) -> Container:
    """The datasets of a version 7.3 file, read lazily; HDF5 stores MATLAB's axes in reverse order."""
    container = open_hdf5(path, reverse=True)
    arrays = {name: source for name, source in container.arrays.items() if not name.startswith("#")}
    return Container(path, "MATLAB 7.3", arrays, container.attributes, faults=container.faults)


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Types and bodies of successive elements."""
    offset = 0
    while offset < len(content):
        if len(content) - offset < 8:
            raise ValueError(f"{len(content) - offset} bytes where an element should begin")
        first, size = (int(number) for number in np.frombuffer(content[offset : offset + 8], f"{order}u4"))
        start = offset + 8
        if first >> 16:  # the short form: both numbers in one word, up to four bytes in the other
            first, size, start = first & 0xFFFF, first >> 16, offset + 4
            end = offset + 8
            if size > 4:
                raise ValueError(f"a short element of {size} bytes")
        else:
            end = start + size if first == _COMPRESSED else start + -(-size // 8) * 8
        if not 1 <= first <= _LAST_TYPE:
            raise ValueError(f"an element of unknown type {first}")
        if start + size > len(content):
            raise ValueError(f"an element of {size} bytes where {len(content) - start} are left")
        yield first, content[start : start + size]
        offset = end


def _array(body: memoryview, order: str) -> tuple[str, npt.NDArray[np.generic]] | None:
    """Name and numbers of an array; None where it holds anything but real numbers."""
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
