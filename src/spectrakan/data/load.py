"""From any data file to trajectories: the first bytes show its kind, the names of its arrays its layout."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spectrakan.data.axes import stride_grid
from spectrakan.data.container import Container, released
from spectrakan.data.decoding import decoding
from spectrakan.data.formats import dimensions, native, open_container, pdebench, plain, the_well
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats.hdf5 import is_remote
from spectrakan.data.formats.mapping import REMEDY, DataMapping
from spectrakan.data.lazy import HELD_BYTES, LazyArray
from spectrakan.errors import DataFormatError
from spectrakan.fields import Array, Trajectories

LAYOUTS: tuple[Callable[[Container], Trajectories | None], ...] = (
    native.read,
    the_well.read,
    pdebench.read,
    plain.read,
    dimensions.read,
)
"""Readers of layouts, from the most to the least specific; each gives None for a file of another layout."""


def load_dataset(
    path: Path | str,
    *,
    mapping: DataMapping | Mapping[str, Any] | Path | str | None = None,
    most_bytes: float = math.inf,
) -> Trajectories:
    """Read a data set of any known format: HDF5, npz, netCDF, .pt or .mat, known by content, not by name.

    A `mapping` (settings, a dictionary, or a YAML file) says what the arrays of a foreign file mean and overrules
    its layout. An address (`hf://`, `https://`, ...) of an HDF5 file is read through fsspec, as far as it is used.
    Fields of more than 256 MB, or than `most_bytes`, stay in the file as a `LazyArray`; smaller ones are read.
    A file that is damaged or unsafe, or that no layout fits, raises `DataFormatError`. So does an HDF5
    file that refers to other files.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "waves.npz"
    >>> np.savez(path, values=np.zeros((4, 11, 32, 1)), x=np.linspace(-1.0, 1.0, 32))
    >>> load_dataset(path).every(5).values.shape
    (4, 3, 32, 1)
    """
    path = Path(path) if is_remote(path) else Path(path).absolute()
    chosen = mapped.as_mapping(mapping)
    with released(path), decoding(path):
        container = open_container(path)
        readers = LAYOUTS if chosen is None else (lambda container: mapped.read(container, chosen),)
        found = next((found for read in readers if (found := read(container)) is not None), None)
        if found is None:
            raise DataFormatError(
                f"'{path}' is {container.kind}, but its arrays have no known meaning: "
                f"{container.describe()}; {REMEDY}"
            )
        return held(found, min(HELD_BYTES, most_bytes))


def every_cell(found: Trajectories, stride: int) -> Trajectories:
    """Every `stride`-th cell along each axis, beginning with the first; arrays in a file stay unread."""
    return found.cells(stride_grid(found.grid, stride), *(slice(None, None, stride),) * len(found.grid.shape))


def held(found: Trajectories, most_bytes: float) -> Trajectories:
    """The same with the fields that fit in so many bytes in memory, and larger ones as they are."""

    def read(array: Array) -> Array:
        if isinstance(array, LazyArray):
            return np.asarray(array) if array.nbytes <= most_bytes else array
        # A part of an array in memory is copied, so that the whole can go.
        return np.ascontiguousarray(array)

    return found.with_arrays(read)
