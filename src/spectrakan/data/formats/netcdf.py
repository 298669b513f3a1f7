"""netCDF: any file by its named axes, and our own sets with one variable a field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, mismatch, missing_package
from spectrakan.data.draft import draft
from spectrakan.data.formats import schema as own
from spectrakan.data.formats.labelled import open_labelled
from spectrakan.data.formats.native import blocks, check_storable, chunk_shape, named_fields
from spectrakan.data.hdf5_heap import find_damaged_heap
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.data.source import read_whole
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories

CLASSIC = (b"CDF\x01", b"CDF\x02")
SEARCHED_BYTES = 2**30
"""Files up to this size are searched for damage that HDF5 would wait on; in larger ones it takes too long."""
ROLE = "role"
"""Attribute of a variable that says which array of the schema it is: `values/0`, `grid/x/edges`, `times`."""


def open_netcdf(path: Path, *, classic: bool) -> Container:
    """A netCDF file: classic through SciPy, netCDF-4 through h5netcdf."""
    if not classic and path.stat().st_size <= SEARCHED_BYTES:
        with decoding(path, kind="netCDF"):
            place = find_damaged_heap(path)
        if place is not None:
            raise mismatch(path, "", "sound heaps", f"impossible sizes at byte {place}")
    return open_labelled(path, "scipy" if classic else "h5netcdf", "netCDF")


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
    kind = None if dtype is None else np.dtype(dtype)
    check_storable(trajectories)
    space = own.AXES[: len(trajectories.grid.shape)]
    sizes = (*trajectories.values.shape[:2], *trajectories.grid.shape)
    with draft(path) as beside, h5netcdf.File(beside, "w") as file:
        file.dimensions = dict(zip(("sample", "time", *space), map(int, sizes), strict=True))
        file.attrs[own.SCHEMA] = own.to_text(own.describe(trajectories, kind))
        _write_small(file, trajectories)
        for key, array in named_fields(trajectories):
            stored = own.stored_type(array, kind)
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
        _, *rest = role.split("/")
        axes: tuple[str, ...]
        if role == "times":
            name, axes = "time", ("time",)
        elif role == "params":
            file.dimensions["param"] = numbers.shape[1]
            name, axes = "params", ("sample", "param")
        elif rest[1] == "centres":
            name, axes = rest[0], (rest[0],)
        else:
            name = f"{rest[0]}_{rest[1]}"
            if rest[1] == "edges":
                file.dimensions[f"{rest[0]}_edge"] = len(numbers)
            axes = (f"{rest[0]}_edge",) if rest[1] == "edges" else (rest[0],)
        variable = file.create_variable(name, axes, "<f8", chunks=numbers.shape, fletcher32=True)
        variable[...] = numbers
        variable.attrs[ROLE] = role


def _variable_name(file: Any, key: str, channel: int, field: str) -> str:
    """The field's own name where netCDF can have it and nothing else does."""
    taken = {*file.variables, *file.dimensions}
    return field if field.isidentifier() and field not in taken else f"{key}_{channel}"
