"""Write a data set: native HDF5, which keeps everything, or netCDF for other programs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from spectrakan.data.decoding import missing_package
from spectrakan.data.formats import native, the_well
from spectrakan.errors import ConfigError, ShapeError, nearest
from spectrakan.fields import Array, Trajectories, blocks
from spectrakan.storage import drafted

CHUNK_BYTES = 2**20
"""A chunk holds whole frames of one sample, at most about this much."""
CHUNK_WASTE = 0.05
"""Largest share of frames that chunks may reserve beyond those that exist."""


def write_dataset(path: Path | str, trajectories: Trajectories, *, dtype: Any = None, layout: str = "native") -> Path:
    """Write a set as native HDF5 (`.h5`, `.hdf5`), or as netCDF (`.nc`) for other programs.

    `layout="the_well"` writes HDF5 as The Well lays it out (`formats/the_well`).

    Numbers keep their type unless `dtype` asks for another. The file appears complete or not at all. From HDF5
    `load_dataset` gives the same set back; netCDF holds what `Trajectories.to_xarray` has: fields with units,
    coordinates, times and parameters.

    >>> import tempfile
    >>> from spectrakan.fields import FieldSpec, Grid
    >>> waves = Trajectories(np.zeros((4, 1, 8, 1)), Grid.uniform((8,)), np.zeros(1), (FieldSpec("height"),))
    >>> write_dataset(Path(tempfile.mkdtemp()) / "waves.nc", waves).name
    'waves.nc'
    """
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ConfigError(f"cannot write '{path}': unknown ending '{path.suffix}'{nearest(path.suffix, WRITERS)}")
    if 0 in trajectories.values.shape:
        raise ShapeError(f"cannot store an empty set of shape {tuple(trajectories.values.shape)}")
    if layout not in LAYOUTS or (layout != "native" and path.suffix == ".nc"):
        raise ConfigError(f"cannot write '{path}' in the layout '{layout}'{nearest(layout, LAYOUTS)} (HDF5 alone)")
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as beside:
        (the_well.write if layout == "the_well" else WRITERS[path.suffix])(beside, trajectories, dtype)
    return path


def _write_native(path: Path, trajectories: Trajectories, dtype: Any) -> None:
    """Fields are written sample block by sample block, everything else in double precision."""
    large = {"values": trajectories.values, "inputs": trajectories.inputs}
    with h5py.File(path, "w", libver="latest") as file:
        for name, numbers in native.small_arrays(trajectories).items():
            file.create_dataset(name, data=numbers.astype("<f8"), chunks=numbers.shape, fletcher32=True)
        for name, array in large.items():
            if array is None:
                continue
            stored = _stored_type(array, dtype)
            chunks = chunk_shape(array.shape, stored)
            target = file.create_dataset(name, array.shape, stored, chunks=chunks, fletcher32=True)
            for first, block in blocks(array):
                target[first : first + len(block)] = block.astype(stored, copy=False)
        # Fixed length: text of variable length lives in a heap that has no checksum.
        file.attrs[native.SCHEMA] = np.bytes_(native.describe(trajectories).encode())


def _write_netcdf(path: Path, trajectories: Trajectories, dtype: Any) -> None:
    try:
        import h5netcdf  # noqa: F401
    except ImportError:
        raise missing_package(path, "h5netcdf", "climate") from None

    stored = trajectories.with_arrays(lambda array: np.asarray(array).astype(_stored_type(array, dtype), copy=False))
    stored.to_xarray().to_netcdf(path, engine="h5netcdf")


WRITERS = {".h5": _write_native, ".hdf5": _write_native, ".nc": _write_netcdf}
"""How each ending is written."""
LAYOUTS = ("native", "the_well")
"""How arrays are named and grouped in HDF5."""


def _stored_type(array: Array, dtype: Any) -> np.dtype[Any]:
    """The type that numbers are stored with: little-endian; truth values become 0 and 1."""
    kind = np.dtype(array.dtype if dtype is None else dtype)
    return np.dtype(np.uint8) if kind.kind == "b" else kind.newbyteorder("<")


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
