"""Stored arrays that are read block by block, in the order of axes in which they were stored.

Sources hold names, never open files, so that they can be pickled; open files are kept in a table per process.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.decoding import decoding
from spectrakan.errors import DataFormatError
from spectrakan.fields import Source

Block = tuple[slice, ...]
"""One slice for each stored axis, each with a start, a stop and a positive step; a source gives it with all axes."""
Stamp = tuple[int, int, int] | None
"""Identity, size and time of change of a file, to detect that it was replaced; None where nothing is compared."""


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
    """The stamp of a file as it is now; a folder has none, because its parts change one by one."""
    try:
        status = path.stat()
    except OSError as problem:
        raise DataFormatError(f"cannot read '{path}': {problem.strerror}") from None
    return None if path.is_dir() else (status.st_ino, status.st_size, status.st_mtime_ns)


def read_whole(source: Source) -> npt.NDArray[Any]:
    """All numbers of a source."""
    return np.asarray(source[tuple(slice(0, size, 1) for size in source.shape)])


def size_in_bytes(shape: Sequence[int], dtype: np.dtype[Any]) -> int:
    """Memory that an array takes when it is held; exact for any size, because Python's integers do not wrap."""
    return math.prod(map(int, shape)) * dtype.itemsize


MOST_OPEN = 16
"""Files kept open at a time; the one used longest ago is closed first."""

Key = tuple[int, Path, Stamp, Callable[[Path], Any]]
_open: OrderedDict[Key, Any] = OrderedDict()


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
    """Forget a handle and close it, if it is this process's; a folder of files (Zarr) has none to close."""
    handle = _open.pop(key)
    if key[0] == os.getpid() and hasattr(handle, "close"):
        handle.close()


@contextmanager
def released(path: Path) -> Iterator[None]:
    """Close what the block opened of a path and what was not open before; arrays open it again when read."""
    before = set(_open)
    try:
        yield
    finally:
        for key in [key for key in _open if key not in before and key[:2] == (os.getpid(), path)]:
            _close(key)
