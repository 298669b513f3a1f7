"""Foreign files: what a file may demand, and one kind of error for everything that a decoder raises.

h5py, zipfile, SciPy and torch raise a dozen kinds of exception on damaged bytes, and document few. Every
call into such a decoder stands inside `decoding`. Before anything is decoded, `require_size` compares the size
that a file declares with the size that it has, so that a small file cannot fill the memory.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spectrakan.errors import DataFormatError, ShapeError, SpectraKANError

MAX_INFLATION = int(os.environ.get("SPECTRAKAN_MAX_INFLATION", "100"))
"""Largest accepted ratio of decoded to stored bytes; set the environment variable for sound files beyond it."""

MAX_INFLATED = int(os.environ.get("SPECTRAKAN_MAX_INFLATED", str(2**30)))
"""Most bytes that compressed data may take after decoding in one piece (1 GiB); likewise."""

FREE_BYTES = 2**27
"""Up to this size (128 MiB) any ratio is accepted: constant fields compress without limit."""

MAX_DEPTH = 32
"""Most groups inside each other."""

MAX_OBJECTS = 200_000
"""Most groups and arrays of a file; a thousand samples in groups take five thousand."""


def mismatch(path: Path, key: str, expected: str, found: str, remedy: str = "") -> DataFormatError:
    """The error for a part of a file that is not what its format requires."""
    where = f"'{path}'" + (f", '{key}'" if key else "")
    return DataFormatError(f"{where}: expected {expected}, found {found}" + (f"; {remedy}" if remedy else ""))


@contextmanager
def decoding(path: Path, key: str = "", *, kind: str = "data") -> Iterator[None]:
    """Turn whatever a decoder raises inside the block into one `DataFormatError` that names file and key."""
    try:
        yield
    except ShapeError as problem:
        raise DataFormatError(f"'{path}': its arrays contradict each other: {problem}") from None
    except SpectraKANError:
        raise
    except Exception as problem:
        reason = " ".join(str(problem).split())[:300]
        found = f"{type(problem).__name__}: {reason}" if reason else type(problem).__name__
        raise mismatch(path, key, f"readable {kind}", found, "the file is damaged or of another kind") from problem


def walk(
    path: Path, item: Any, children: Callable[[Any], Iterable[tuple[str, Any]]], kind: str = "groups"
) -> Iterator[tuple[str, Any]]:
    """Everything inside an item of a file with its name `group/name`, parents first; depth and number are limited."""

    def below(prefix: str, parent: Any, depth: int) -> Iterator[tuple[str, Any]]:
        for key, child in children(parent):
            if depth > MAX_DEPTH:
                raise mismatch(path, f"{prefix[:40]}...", f"{kind} at most {MAX_DEPTH} deep", "deeper ones")
            yield prefix + key, child
            yield from below(f"{prefix}{key}/", child, depth + 1)

    for count, found in enumerate(below("", item, 0)):
        if count >= MAX_OBJECTS:
            raise mismatch(path, found[0], f"at most {MAX_OBJECTS} objects", "more")
        yield found


def regular_file(path: Path) -> os.stat_result:
    """The status of a file; what is not a regular one (a device, a pipe or a socket never ends) is refused."""
    try:
        status = path.stat()
    except OSError as problem:
        raise DataFormatError(f"cannot read '{path}': {problem.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder (of Zarr? open it by xarray and Trajectories.from_xarray)"
        kind = kind if stat.S_ISDIR(status.st_mode) else "a device, pipe or socket"
        raise DataFormatError(f"'{path}': expected a regular file, found {kind}")
    return status


def require_size(path: Path, key: str, decoded: int, stored: int, *, piece: int | None = None) -> None:
    """Refuse a declared size in bytes that does not fit the bytes that it is stored in.

    `decoded` is the size of an array, or of all arrays of a file, after decoding; `piece` is what is decoded at
    a time, by default all of it. Data that are not compressed take what they are stored in, and are not limited.
    """
    piece = decoded if piece is None else piece
    for limit, size, name in (
        (MAX_INFLATION * stored, max(decoded, piece), "SPECTRAKAN_MAX_INFLATION"),
        (max(MAX_INFLATED, 2 * stored), piece, "SPECTRAKAN_MAX_INFLATED"),
    ):
        if size > max(FREE_BYTES, limit):
            remedy = f"if the file is sound, set the environment variable {name} to a larger number"
            raise mismatch(path, key, f"at most {limit} bytes of {stored} stored bytes", f"{size} bytes", remedy)


def largest_size(stored: int) -> int:
    """Most bytes that `require_size` accepts of `stored` bytes decoded in one piece."""
    return max(FREE_BYTES, min(MAX_INFLATION * stored, max(MAX_INFLATED, 2 * stored)))
