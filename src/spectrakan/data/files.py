"""From any data file to trajectories, and back.

The first bytes of a file show its kind, the names of its arrays its layout. Written are native HDF5, which keeps
everything, The Well's layout, and netCDF for other programs.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spectrakan.data.container import Container, released
from spectrakan.data.decoding import decoding
from spectrakan.data.formats import dimensions, native, open_container, pdebench, plain, the_well
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats.hdf5 import is_remote
from spectrakan.data.formats.mapping import REMEDY, DataMapping
from spectrakan.data.lazy import HELD_BYTES, LazyArray
from spectrakan.errors import ConfigError, DataFormatError, ShapeError, nearest, require_package
from spectrakan.fields import Array, Grid, Trajectories
from spectrakan.fields.grid import grid_around
from spectrakan.storage import drafted, require_writable

READERS: tuple[Callable[[Container], Trajectories | None], ...] = (
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
        readers = READERS if chosen is None else (lambda container: mapped.read(container, chosen),)
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


def stride_grid(grid: Grid, stride: int) -> Grid:
    """Every `stride`-th cell centre of a grid; each represents the cells around it."""
    if stride == 1:
        return grid
    centres = [axis[::stride].numpy() for axis in grid.coordinates]
    if min(len(axis) for axis in centres) < 2:
        raise ConfigError(f"every {stride}-th cell leaves fewer than 2 of {grid.shape} cells along an axis")
    coarse = grid_around(centres, grid.boundary)
    weights = []
    for axis, (old, width) in enumerate(zip(grid.weights, coarse.weights, strict=True)):
        relative = grid.edges[axis].diff() / grid.extent[axis]
        by_width = bool((old / relative - 1).abs().max() < 1e-6)
        weights.append(width if by_width else old[::stride] / old[::stride].sum())
    return Grid(coarse.coordinates, coarse.edges, tuple(weights), coarse.boundary)


def held(found: Trajectories, most_bytes: float) -> Trajectories:
    """The same with the fields that fit in so many bytes in memory, and larger ones as they are."""

    def read(array: Array) -> Array:
        if isinstance(array, LazyArray):
            return np.asarray(array) if array.nbytes <= most_bytes else array
        # A part of an array in memory is copied, so that the whole can go.
        return np.ascontiguousarray(array)

    return found.with_arrays(read)


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
    _check_ending(path)
    if 0 in trajectories.values.shape:
        raise ShapeError(f"cannot store an empty set of shape {tuple(trajectories.values.shape)}")
    if layout not in LAYOUTS or (layout != "native" and path.suffix == ".nc"):
        raise ConfigError(f"cannot write '{path}' in the layout '{layout}'{nearest(layout, LAYOUTS)} (HDF5 alone)")
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as beside:
        (the_well.write if layout == "the_well" else WRITERS[path.suffix])(beside, trajectories, dtype)
    return path


def check_output(path: Path, *, force: bool = False) -> None:
    """Refuse a file of fields that cannot be written: ending, missing package, existing file or folder."""
    _check_ending(path)
    if path.exists() and not force:
        raise ConfigError(f"'{path}' exists already; choose another --output, or --force to replace it")
    require_writable(path.parent)


def _check_ending(path: Path) -> None:
    if path.suffix not in WRITERS:
        raise ConfigError(f"cannot write '{path}': unknown ending '{path.suffix}'{nearest(path.suffix, WRITERS)}")
    if path.suffix == ".nc":
        require_package("h5netcdf", "climate", f"writing '{path}'")


def _write_netcdf(path: Path, trajectories: Trajectories, dtype: Any) -> None:
    stored = trajectories.with_arrays(
        lambda array: np.asarray(array).astype(native.stored_type(array, dtype), copy=False)
    )
    stored.to_xarray().to_netcdf(path, engine="h5netcdf")


WRITERS = {".h5": native.write, ".hdf5": native.write, ".nc": _write_netcdf}
"""How each ending is written."""
LAYOUTS = ("native", "the_well")
"""How arrays are named and grouped in HDF5."""
