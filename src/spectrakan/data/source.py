"""Stored arrays that are read block by block, in the order of axes in which they were stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from spectrakan.errors import DataFormatError

Block = tuple[slice, ...]
"""One slice for each stored axis, each with a start, a stop and a positive step."""


@runtime_checkable
class Source(Protocol):
    """An array in a file (or in memory). It can be pickled: it holds names, never open files."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the stored axes."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        ...

    def read(self, block: Block) -> npt.NDArray[Any]:
        """The numbers of a block, with all axes kept."""
        ...


@dataclass(frozen=True, eq=False)
class HeldSource:
    """An array that is in memory already, because its format cannot be read in parts."""

    array: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.array.dtype

    def read(self, block: Block) -> npt.NDArray[Any]:
        """A view of a block."""
        return np.asarray(self.array[block])


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

    def read(self, block: Block) -> npt.NDArray[Any]:
        """A block, of which only the named members are opened."""
        chosen = self.members[block[0]]
        if not chosen:
            return np.empty((0, *(_length(part, n) for part, n in zip(block[1:], self.shape[1:], strict=True))))
        return np.stack([member.read(block[1:]) for member in chosen])


@dataclass(frozen=True)
class Stamp:
    """What tells whether a file is still the one that was opened: its identity, size and time of change."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of a file as it is now (a folder has none: its parts change one by one)."""
        try:
            status = path.stat()
        except OSError as problem:
            raise DataFormatError(f"cannot read '{path}': {problem.strerror}") from None
        if path.is_dir():
            return cls(0, 0, 0)
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)

    def check(self, path: Path) -> None:
        """Refuse a file that was replaced while arrays were being read from it."""
        if Stamp.of(path) != self:
            raise DataFormatError(f"'{path}' was changed while data were being read from it; load it again")


def read_whole(source: Source) -> npt.NDArray[Any]:
    """All numbers of a source."""
    return source.read(tuple(slice(0, size, 1) for size in source.shape))


def size_in_bytes(shape: Sequence[int], dtype: np.dtype[Any]) -> int:
    """Memory that an array takes when it is held; exact for any size, for Python's integers do not wrap."""
    count = 1
    for size in shape:
        count *= int(size)
    return count * dtype.itemsize


def _length(part: slice, size: int) -> int:
    return len(range(*part.indices(size)))
