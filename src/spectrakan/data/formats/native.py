"""Files of our own: HDF5 (and npz) with `values`, `inputs`, `times`, `params`, `grid` and a JSON schema.

Fields carry HDF5's Fletcher-32 checksum per chunk, the file's own structure is of the newest HDF5 kind, whose
parts carry checksums too, and the small arrays are covered by a SHA-256 in the schema: a damaged file is
refused, not read wrongly.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container
from spectrakan.data.formats import schema as own
from spectrakan.data.lazy import LazyArray, Part, samples_per_block
from spectrakan.data.source import read_whole
from spectrakan.fields import Array, Trajectories

CHUNK_BYTES = 2**20
"""A chunk holds whole frames of one sample, at most about this much."""
CHUNK_WASTE = 0.05
"""Largest share of frames that chunks may reserve beyond those that exist."""


def recognises(container: Container) -> bool:
    """Whether the file carries our schema beside `values`."""
    return _schema_text(container) is not None and "values" in container


def read(container: Container) -> Trajectories:
    """A file of our own, checked against its schema."""
    schema = own.from_text(container.path, _schema_text(container))
    small = {
        name: np.asarray(read_whole(container.array(name)))
        for name in container.arrays
        if name in {"times", "params"} or name.startswith("grid/")
    }
    axes = ("sample", "time", *own.AXES[: len(schema.shape) - 3], "channel")
    inputs = _whole(container, "inputs", axes) if schema.input_dtype else None
    return own.assemble(container.path, schema, (_whole(container, "values", axes), inputs), small)


def save_dataset(path: Path | str, trajectories: Trajectories, dtype: Any = np.float32) -> Path:
    """Write a native HDF5 file, sample block by sample block; it appears complete or not at all.

    Fields are stored as `dtype`, or as they are with `dtype=None`; everything else in double precision.
    """
    path = Path(path)
    schema = own.describe(trajectories, dtype)
    with draft(path) as beside, h5py.File(beside, "w", libver="latest") as file:
        for name, numbers in own.small_arrays(trajectories).items():
            file.create_dataset(name, data=numbers.astype("<f8"), chunks=numbers.shape, fletcher32=True)
        for name, array in named_fields(trajectories):
            stored = own.stored_type(array, dtype)
            chunks = chunk_shape(array.shape, stored)
            target = file.create_dataset(name, array.shape, stored, chunks=chunks, fletcher32=True)
            for first, block in blocks(array, stored):
                target[first : first + len(block)] = block
        # Fixed length: text of variable length lives in a heap that has no checksum.
        file.attrs[own.SCHEMA] = np.bytes_(schema.encode())
    return path


def named_fields(trajectories: Trajectories) -> list[tuple[str, Array]]:
    """The large arrays of a set: `values`, and `inputs` where there are some."""
    inputs = trajectories.inputs
    return [("values", trajectories.values)] + ([] if inputs is None else [("inputs", inputs)])


def blocks(array: Array, dtype: np.dtype[Any]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The samples of an array in pieces of bounded size, each with the number of its first sample."""
    step = samples_per_block(array.shape, np.dtype(array.dtype))
    for first in range(0, array.shape[0], step):
        yield first, np.asarray(array[first : first + step]).astype(dtype, copy=False)


def _whole(container: Container, key: str, axes: tuple[str, ...]) -> LazyArray:
    return LazyArray.stack([Part(container.ranked(key, axes), tuple(range(len(axes))))])


def _schema_text(container: Container) -> Any:
    if (text := container.attribute(own.SCHEMA)) is not None:
        return str(text)
    source = container.arrays.get(own.SCHEMA)
    if source is None or source.dtype.kind != "U" or source.shape != ():
        return None
    return str(read_whole(source))


def chunk_shape(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Whole frames of one sample, as many as nearly divide all frames: HDF5 stores the last chunk in full.

    A frame of more than 16 `CHUNK_BYTES` is cut along its longest axes.

    >>> chunk_shape((8, 101, 64, 64, 1), np.dtype("f4"))
    (1, 53, 64, 64, 1)
    """
    frames, *space = shape[1:]
    most = min(frames, max(1, CHUNK_BYTES // (math.prod(space) * dtype.itemsize)))
    fitting = (n for n in range(most, 0, -1) if -(-frames // n) * n <= (1 + CHUNK_WASTE) * frames)
    while math.prod(space) * dtype.itemsize > 16 * CHUNK_BYTES:
        longest = space.index(max(space))
        space[longest] = -(-space[longest] // 2)
    return (1, next(fitting), *space)


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; it becomes `path` when the block succeeds and is removed otherwise.

    Readers see the old file or the new one. The ending of the name is kept, because some writers go by it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{os.getpid()}.draft.{path.name}")
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
