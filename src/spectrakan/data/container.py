"""What a data file holds, whatever its kind: named arrays and attributes, before any of it has a meaning.

A file's kind (HDF5, npz, netCDF, .pt, .mat) says how bytes become arrays; its layout (native, PDEBench,
named axes, ...) says what the arrays mean. A container is independent of the layout, so that every layout can be
read from every kind of file. Arrays are read block by block, in the order of axes in which they were stored. They
hold names, never open files, so that they can be pickled; open files are kept in a table per process.
"""

import atexit
import math
import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from spectrakan.data.decoding import decoding, mismatch, regular_file
from spectrakan.errors import DataFormatError, nearest
from spectrakan.fields import Source

SMALL_BYTES = 2**26
"""Most that a coordinate, a list of times or a table of parameters may take (64 MiB)."""

NUMBERS = "fiub"
"""Kinds of NumPy types that fields are made of: real numbers of any width, and truth values."""
MOST_OPEN = 16
"""Files kept open at a time; the one used longest ago is closed first."""

Block = tuple[slice, ...]
"""One slice for each stored axis, each with a start, a stop and a positive step; a source gives it with all axes."""
Stamp = tuple[int, int, int] | None
"""Identity, size and time of change of a file, to detect that it was replaced; None where nothing is compared."""
Key = tuple[int, Path, Stamp, Callable[[Path], Any]]
_open: OrderedDict[Key, Any] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Container:
    """An opened file: arrays by name (`group/name` inside groups), attributes by object (`""` is the root).

    `dims` names the axes of arrays whose format names them; `faults` lists what is missing of incomplete
    arrays, which are refused when they are read.
    """

    path: Path
    kind: str
    arrays: Mapping[str, Source]
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        return key in self.arrays

    def attribute(self, name: str, of: str = "") -> Any:
        """An attribute of the root or of a named object; None where it is absent."""
        return self.attributes.get(of, {}).get(name)

    def array(self, key: str) -> Source:
        """An array of real numbers; an error names the nearest that exists."""
        if key not in self.arrays:
            raise DataFormatError(f"'{self.path}' has no array '{key}'{nearest(key, list(self.arrays)[:40])}")
        if key in self.faults:
            raise mismatch(self.path, key, "an array that was written whole", self.faults[key])
        source = self.arrays[key]
        if source.dtype.kind not in NUMBERS:
            raise mismatch(self.path, key, "an array of real numbers", f"type {source.dtype}")
        if 0 in source.shape:
            raise mismatch(self.path, key, "at least one number", f"an empty array of shape {source.shape}")
        return source

    def vector(self, key: str) -> npt.NDArray[np.float64]:
        """A one-dimensional array of finite numbers, read whole; axes of size one are dropped."""
        long = [size for size in self.array(key).shape if size != 1]
        return self._small(key, len(long) <= 1, "a short list of numbers").reshape(-1)

    def table(self, key: str, rows: int) -> npt.NDArray[np.float64]:
        """Finite numbers `(rows, columns)`, read whole; a list of `rows` numbers is one column."""
        shape = self.array(key).shape
        row_vector = shape == (1, rows)  # as MATLAB stores a list
        fits = row_vector or (len(shape) in {1, 2} and shape[0] == rows)
        return self._small(key, fits, f"a table of {rows} rows, one a sample").reshape(rows, -1)

    def texts(self, key: str, count: int) -> tuple[str, ...] | None:
        """A list of `count` texts; None where the file has none of that name."""
        source = self.arrays.get(key)
        if source is None or not is_text(source.dtype):
            return None
        if math.prod(source.shape) != count or max(source.shape, default=1) != count:
            raise mismatch(self.path, key, f"{count} texts", f"shape {source.shape}")
        listed = read_whole(source).reshape(-1).tolist()
        return tuple(text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text) for text in listed)

    def describe(self) -> str:
        """Names and shapes of the first arrays, for error messages."""
        listed = [f"{name} {source.shape}" for name, source in list(self.arrays.items())[:12]]
        more = len(self.arrays) - len(listed)
        return (", ".join(listed) or "no arrays") + (f" and {more} more" if more else "")

    def _small(self, key: str, fits: bool, expected: str) -> npt.NDArray[np.float64]:
        """The finite numbers of an array that has the expected shape and is not large."""
        source = self.array(key)
        if not fits or size_in_bytes(source.shape, source.dtype) > SMALL_BYTES:
            raise mismatch(self.path, key, expected, f"shape {source.shape}")
        numbers = read_whole(source).astype(np.float64)
        if not np.isfinite(numbers).all():
            index = tuple(np.argwhere(~np.isfinite(numbers))[0].tolist())
            found = f"{numbers[index]} at index {', '.join(map(str, index))}"
            raise mismatch(self.path, key, "finite numbers", found)
        return numbers


def is_text(dtype: np.dtype[Any]) -> bool:
    """Whether an array holds text: of fixed length, or an HDF5 text of variable length."""
    return dtype.kind in "US" or (dtype.kind == "O" and h5py.check_string_dtype(dtype) is not None)


@dataclass(frozen=True, eq=False)
class GroupedSource:
    """Arrays of equal shape, one a sample, seen as one array with the samples as its first axis."""

    members: tuple[Source, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of members, then their shape."""
        return (len(self.members), *self.members[0].shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers of all members."""
        return np.result_type(*{member.dtype for member in self.members})

    def __getitem__(self, block: Block) -> npt.NDArray[Any]:
        """A block that is not empty, of which only the named members are opened."""
        return np.stack([member[block[1:]] for member in self.members[block[0]]])


@dataclass(frozen=True)
class FileSource:
    """The array `key` of what `opener` opens; `reverse` reverses its axes (MATLAB stores the first axis fastest)."""

    path: Path
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stamp: Stamp
    opener: Callable[[Path], Any]
    reverse: bool = False

    def __getitem__(self, block: Block) -> npt.NDArray[Any]:
        """A block; only the parts of the file that it touches are read."""
        with decoding(self.path, self.key, kind="numbers"):
            stored = opened(self.path, self.stamp, self.opener)[self.key]
            return np.asarray(stored[block[::-1]]).T if self.reverse else np.asarray(stored[block])


def stamp_of(path: Path) -> Stamp:
    """The stamp of a file as it is now."""
    status = regular_file(path)
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def read_whole(source: Source) -> npt.NDArray[Any]:
    """All numbers of a source."""
    return np.asarray(source[tuple(slice(0, size, 1) for size in source.shape)])


def size_in_bytes(shape: Sequence[int], dtype: np.dtype[Any]) -> int:
    """Memory that an array takes when it is held; exact for any size, because Python's integers do not wrap."""
    return math.prod(map(int, shape)) * dtype.itemsize


def opened(path: Path, stamp: Stamp, opener: Callable[[Path], Any]) -> Any:
    """The handle that `opener` gives for a path, from this process's own table.

    The process id is part of the key: a handle inherited by `fork` shares its library's state with the parent
    and must not be used. A file that is no longer the one of the stamp is refused.
    """
    key = (os.getpid(), path, stamp, opener)
    if key not in _open:
        if stamp is not None and stamp_of(path) != stamp:
            raise DataFormatError(f"'{path}' was changed while data were being read from it; load it again")
        _open[key] = opener(path)
        while len(_open) > MOST_OPEN:
            _close(next(iter(_open)))
    _open.move_to_end(key)
    return _open[key]


def _close(key: Key) -> None:
    """Forget a handle and close it, if it is this process's."""
    handle = _open.pop(key)
    if key[0] == os.getpid():
        with warnings.catch_warnings():  # what an error on its way still holds of a classic netCDF file closes later
            warnings.filterwarnings("ignore", "Cannot close a netcdf_file", RuntimeWarning)
            handle.close()


@atexit.register
def _close_all() -> None:
    """Close what is open while Python still runs: HDF5 reads files behind addresses through it, to the last."""
    for key in list(_open):
        _close(key)


@contextmanager
def released(path: Path) -> Iterator[None]:
    """Close what the block opened of a path and what was not open before; arrays open it again when read."""
    before = set(_open)
    try:
        yield
    finally:
        for key in [key for key in _open if key not in before and key[:2] == (os.getpid(), path)]:
            _close(key)
