"""netCDF: any file by its named axes through xarray, and our own sets with one variable a field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import NUMBERS, Container
from spectrakan.data.decoding import decoding, mismatch, missing_package
from spectrakan.data.formats import schema as own
from spectrakan.data.formats.hdf5 import require_sound_heaps
from spectrakan.data.formats.native import blocks, chunk_shape, draft, named_fields
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.data.source import Block, Source, Stamp, opened, read_whole
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories

Engine = Literal["scipy", "h5netcdf", "zarr"]
CLASSIC = (b"CDF\x01", b"CDF\x02")
ROLE = "role"
"""Attribute of a variable that says which array of the schema it is: `values/0`, `grid/x/edges`, `times`."""


def open_netcdf(path: Path, *, faults: Mapping[str, str] | None = None, classic: bool = False) -> Container:
    """A netCDF file: classic through SciPy, netCDF-4 through h5netcdf, after `open_hdf5` has looked through it."""
    if not classic:
        with decoding(path, kind="netCDF"):
            require_sound_heaps(path)
    return open_labelled(path, "scipy" if classic else "h5netcdf", "netCDF", faults=faults)


@dataclass(frozen=True)
class LabelledSource:
    """A variable of a set that xarray opens."""

    path: Path
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stamp: Stamp
    engine: Engine

    def __getitem__(self, block: Block) -> npt.NDArray[Any]:
        """A block, by xarray's lazy indexing."""
        with decoding(self.path, self.key, kind="netCDF or Zarr"):
            dataset = opened(self.path, self.stamp, _OPENERS[self.engine])
            return np.asarray(dataset.variables[self.key][block].values)


def open_labelled(path: Path, engine: Engine, kind: str, *, faults: Mapping[str, str] | None = None) -> Container:
    """List the variables of a set; no field is read.

    xarray unpacks integers and replaces missing values by NaN, by the conventions of netCDF.
    """
    stamp = Stamp.of(path)
    arrays: dict[str, Source] = {}
    with decoding(path, kind=kind):
        try:
            dataset = opened(path, stamp, _OPENERS[engine])
        except ImportError:
            raise missing_package(path, "xarray, h5netcdf or zarr", "climate") from None
        attributes: dict[str, dict[str, Any]] = {"": {str(k): v for k, v in dataset.attrs.items()}}
        dims: dict[str, tuple[str, ...]] = {}
        for name, variable in dataset.variables.items():
            key = str(name)
            arrays[key] = LabelledSource(path, key, tuple(variable.shape), variable.dtype, stamp, engine)
            attributes[key] = {str(k): v for k, v in variable.attrs.items()}
            dims[key] = tuple(str(dim) for dim in variable.dims)
    return Container(path, kind, arrays, attributes, dims, faults or {})


def recognises(container: Container) -> bool:
    """Whether the file is a set of ours."""
    return container.attribute(own.SCHEMA) is not None and bool(container.dims) and "values" not in container


def read(container: Container) -> Trajectories:
    """A set of ours, checked against its schema."""
    schema = own.from_text(container.path, container.attribute(own.SCHEMA))
    roles = {str(container.attribute(ROLE, of=name)): name for name in container.arrays}
    dims = len(schema.shape) - 3

    def fields(key: str, count: int) -> LazyArray:
        parts = []
        for channel in range(count):
            name = roles.get(f"{key}/{channel}")
            if name is None:
                raise mismatch(container.path, f"{key}/{channel}", "a variable of that role", "none")
            source = container.ranked(name, ("sample", "time", *own.AXES[:dims]))
            parts.append(Part(source, (*range(dims + 2), None)))
        return LazyArray.stack(parts)

    small = {
        role: np.asarray(read_whole(container.array(name)), dtype=np.float64)
        for role, name in roles.items()
        if role in {"times", "params"} or role.startswith("grid/")
    }
    inputs = fields("inputs", len(schema.input_fields)) if schema.input_dtype else None
    return own.assemble(container.path, schema, (fields("values", len(schema.fields)), inputs), small)


def save_netcdf(path: Path, trajectories: Trajectories, dtype: Any = None) -> Path:
    """Write a set as netCDF-4: axes `sample`, `time`, `x`, `y`, `z`, one variable a field, streamed."""
    try:
        import h5netcdf
    except ImportError:
        raise missing_package(path, "h5netcdf", "climate") from None
    schema = own.describe(trajectories, dtype)
    space = own.AXES[: len(trajectories.grid.shape)]
    sizes = (*trajectories.values.shape[:2], *trajectories.grid.shape)
    with draft(path) as beside, h5netcdf.File(beside, "w") as file:
        file.dimensions = dict(zip(("sample", "time", *space), map(int, sizes), strict=True))
        file.attrs[own.SCHEMA] = schema
        _write_small(file, trajectories)
        for key, array in named_fields(trajectories):
            stored = own.stored_type(array, dtype)
            if stored.itemsize < 4 and stored.kind == "f":
                raise ConfigError(f"netCDF has no type {stored}; give dtype=numpy.float32")
            axes = ("sample", "time", *space)
            if key == "inputs":
                file.dimensions["instant"] = 1
                axes = ("sample", "instant", *space)
            specs = trajectories.fields if key == "values" else trajectories.input_fields
            chunks = chunk_shape(tuple(array.shape[:-1]), stored)
            targets = []
            for channel, spec in enumerate(specs):
                name = _variable_name(file, key, channel, spec.name)
                target = file.create_variable(name, axes, stored, chunks=chunks, fletcher32=True)
                target.attrs["long_name"], target.attrs["units"] = spec.name, spec.unit
                target.attrs[ROLE] = f"{key}/{channel}"
                targets.append(target)
            for first, block in blocks(array, stored):
                for channel, target in enumerate(targets):
                    target[first : first + len(block)] = block[..., channel]
    return path


def _write_small(file: Any, trajectories: Trajectories) -> None:
    """Coordinates under the names of their axes, the other small arrays with axes of their own."""
    for role, numbers in own.small_arrays(trajectories).items():
        _, axis, part = role.split("/") if "/" in role else ("", role, "")
        name, axes = {
            "times": ("time", ("time",)),
            "params": ("params", ("sample", "param")),
            "centres": (axis, (axis,)),
            "edges": (f"{axis}_edges", (f"{axis}_edge",)),
            "weights": (f"{axis}_weights", (axis,)),
        }[part or role]
        for dim, size in zip(axes, numbers.shape, strict=True):
            if dim not in file.dimensions:
                file.dimensions[dim] = size
        variable = file.create_variable(name, axes, "<f8", chunks=numbers.shape, fletcher32=True)
        variable[...] = numbers
        variable.attrs[ROLE] = role


def _variable_name(file: Any, key: str, channel: int, field: str) -> str:
    """The field's own name where netCDF can have it and nothing else does."""
    taken = {*file.variables, *file.dimensions}
    return field if field.isidentifier() and field not in taken else f"{key}_{channel}"


def _open(path: Path, engine: Engine, options: dict[str, Any], texts: Sequence[str] = ()) -> Any:
    import xarray

    return xarray.open_dataset(
        path,
        engine=engine,
        cache=False,
        decode_times=False,
        decode_timedelta=False,
        drop_variables=list(texts),
        backend_kwargs=options,
    )


def _open_scipy(path: Path) -> Any:
    return _open(path, "scipy", {})


def _open_h5netcdf(path: Path) -> Any:
    return _open(path, "h5netcdf", {"phony_dims": "access"})


def _open_zarr(path: Path) -> Any:
    """A Zarr folder without its arrays of text, which are never decoded."""
    import zarr

    group = zarr.open_group(str(path), mode="r", use_consolidated=False)
    texts = [name for name, array in group.arrays() if np.dtype(array.dtype).kind not in NUMBERS + "mM"]
    return _open(path, "zarr", {"consolidated": False}, texts)


_OPENERS = {"scipy": _open_scipy, "h5netcdf": _open_h5netcdf, "zarr": _open_zarr}
