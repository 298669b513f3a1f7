"""From any data file to trajectories: its kind shows in its first bytes, its layout in its names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from spectrakan.config import build_settings, read_yaml
from spectrakan.data.axes import stride_grid
from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding
from spectrakan.data.formats import climate, dimensions, native, netcdf, pdebench, plain
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats.hdf5 import is_hdf5, open_hdf5
from spectrakan.data.formats.mapping import DataMapping
from spectrakan.data.formats.mat import HEADER_5, HEADER_73, open_mat, open_mat73
from spectrakan.data.formats.netcdf import CLASSIC, open_netcdf
from spectrakan.data.formats.npz import MAGIC, open_npz
from spectrakan.data.formats.torch_file import open_torch
from spectrakan.data.formats.zarr import is_zarr, open_zarr
from spectrakan.data.handles import released
from spectrakan.data.lazy import HELD_BYTES, LazyArray
from spectrakan.errors import ConfigError, DataFormatError, ShapeError
from spectrakan.fields import Array, Trajectories

LAYOUTS: tuple[tuple[Callable[[Container], bool], Callable[[Container], Trajectories]], ...] = (
    (native.recognises, native.read),
    (netcdf.recognises, netcdf.read),
    (pdebench.recognises, pdebench.read),
    (climate.recognises, climate.read),
    (plain.recognises, plain.read),
    (dimensions.recognises, dimensions.read),
)
"""Layouts from the surest to the vaguest: whether a container has it, and how it is read."""


def load_dataset(
    path: Path | str,
    *,
    stride_space: int = 1,
    stride_time: int = 1,
    stride_samples: int = 1,
    mapping: DataMapping | Mapping[str, Any] | Path | str | None = None,
) -> Trajectories:
    """Read a data set of any known format; what kind of file it is shows in its content, not in its name.

    Strides keep every n-th sample, frame and cell, beginning with the first. A `mapping` (settings, a
    dictionary, or a YAML file) says what the arrays of a foreign file mean and overrules its layout.
    Fields of more than `HELD_BYTES` after striding stay in the file as a `LazyArray`; smaller ones are read.
    A file that is damaged, or that no rule fits, raises `DataFormatError`. All formats: docs/data_format.md.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "waves.npz"
    >>> np.savez(path, values=np.zeros((4, 11, 32, 1)), x=np.linspace(-1.0, 1.0, 32))
    >>> load_dataset(path, stride_space=2, stride_time=5).values.shape
    (4, 3, 16, 1)
    """
    path = Path(path).absolute()
    _check_strides(stride_space=stride_space, stride_time=stride_time, stride_samples=stride_samples)
    chosen = _mapping(mapping)
    with released(path):
        try:
            container = open_container(path)
            found = _layout(container)(container) if chosen is None else mapped.read(container, chosen)
            found = _stride(found, stride_samples, stride_time, stride_space)
        except ShapeError as problem:
            raise DataFormatError(f"'{path}': its arrays contradict each other: {problem}") from None
        inputs = None if found.inputs is None else _hold(found.inputs)
        return replace(found, values=_hold(found.values), inputs=inputs)


def open_container(path: Path) -> Container:
    """The arrays of a file, by the kind that its first bytes show."""
    try:
        if is_zarr(path):
            return open_zarr(path)
        with path.open("rb") as file:
            head = file.read(32)
        hierarchical = is_hdf5(path)
    except OSError as problem:
        raise DataFormatError(f"cannot read '{path}': {problem.strerror}") from None
    if not head:
        raise DataFormatError(f"'{path}' is empty")
    if hierarchical:
        return open_mat73(path) if head.startswith(HEADER_73) else _open_hierarchical(path)
    if head.startswith(CLASSIC):
        return open_netcdf(path, classic=True)
    if head.startswith(HEADER_5):
        return open_mat(path)
    if head.startswith(MAGIC):
        return open_torch(path) if _is_torch_archive(path) else open_npz(path)
    if head.startswith(b"\x80") and path.suffix in {".pt", ".pth"}:
        return open_torch(path)  # the format of torch before 1.6, a bare pickle read without running it
    raise DataFormatError(
        f"'{path}' begins with {head[:8]!r}, which is none of HDF5, npz, netCDF, .pt and .mat, "
        "and it is no Zarr folder"
    )


def _open_hierarchical(path: Path) -> Container:
    """HDF5 as such, or as netCDF-4 where it says to be or where axes have names."""
    container = open_hdf5(path)
    scales = any(_text(attributes.get("CLASS")) == "DIMENSION_SCALE" for attributes in container.attributes.values())
    if container.attribute("_NCProperties") is not None or scales:
        return open_netcdf(path, classic=False)
    return container


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _is_torch_archive(path: Path) -> bool:
    """Whether a zip file is torch's: its members lie in a folder, beside `data.pkl`; those of npz do not."""
    with decoding(path, kind="npz or .pt"), ZipFile(path) as archive:
        return any(name.endswith("/data.pkl") for name in archive.namelist())


def _layout(container: Container) -> Callable[[Container], Trajectories]:
    for recognises, read in LAYOUTS:
        if recognises(container):
            return read
    raise DataFormatError(
        f"'{container.path}' is {container.kind}, but its arrays have no known meaning: "
        f"{container.describe()}; "
        "say what they are by a mapping (docs/data_format.md)"
    )


def _mapping(mapping: DataMapping | Mapping[str, Any] | Path | str | None) -> DataMapping | None:
    if mapping is None or isinstance(mapping, DataMapping):
        return mapping
    choices = mapping if isinstance(mapping, Mapping) else read_yaml(Path(mapping))
    return build_settings(DataMapping, choices, where="mapping")


def _check_strides(**strides: int) -> None:
    for name, stride in strides.items():
        if stride < 1:
            raise ConfigError(f"{name} must be a whole number of at least 1, got {stride}")


def _stride(found: Trajectories, samples: int, time: int, space: int) -> Trajectories:
    cells = (slice(None, None, space),) * len(found.grid.shape)
    return replace(
        found,
        values=_narrow(found.values, slice(None, None, samples), slice(None, None, time), *cells),
        inputs=None
        if found.inputs is None
        else _narrow(found.inputs, slice(None, None, samples), slice(None), *cells),
        grid=stride_grid(found.grid, space),
        times=found.times[::time],
        params=None if found.params is None else found.params[::samples],
        # Every n-th cell or frame is not what the solver gives on a coarser grid, and samples are numbered anew.
        origin=found.origin if samples == time == space == 1 else {},
    )


def _narrow(array: Array, *slices: slice) -> Array:
    return array.narrow(*slices) if isinstance(array, LazyArray) else array[slices]


def _hold(array: Array) -> Array:
    """A small array in memory, a large one as it is."""
    if isinstance(array, LazyArray) and array.nbytes <= HELD_BYTES:
        return np.asarray(array)
    return array
