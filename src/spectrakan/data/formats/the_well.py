"""The Well's layout: HDF5 with groups by rank of tensor, and boundary conditions as groups of their own.

| group | holds | becomes |
|---|---|---|
| `dimensions` | `time` and one list of coordinates an axis, named by `spatial_dims` | times, grid |
| `t0_fields`, `t1_fields`, `t2_fields` | scalars, vectors (.., D), tensors (.., D, D) | fields, one a component |
| `boundary_conditions` | for each: `associated_dims` and `bc_type`: periodic, wall or open | boundary of each axis |
| `scalars`, `simulation_parameters` | numbers | constants, or parameters where they differ between samples |

Fields are `(sample, time, *space)`; those that `sample_varying`, `time_varying` or `dim_varying` calls constant along
an axis lack it, and are repeated. In a set of one frame, fields that do not vary in time are inputs of a steady
problem. Scalars that vary in time have no counterpart and are left out. A spherical grid is read as a plain box.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container, read_whole
from spectrakan.data.decoding import mismatch
from spectrakan.data.formats.mapping import SPACE, stored_times
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.errors import ConfigError
from spectrakan.fields import Array, Boundary, FieldSpec, Trajectories, blocks
from spectrakan.fields.grid import grid_around

GROUPS = ("t0_fields", "t1_fields", "t2_fields")
BOUNDARIES: dict[str, Boundary] = {"periodic": "periodic", "wall": "wall", "open": "outflow"}
TYPES = {"periodic": "PERIODIC", "wall": "WALL", "dirichlet": "WALL", "outflow": "OPEN"}
"""The Well's word for each of our boundaries; it has none for a held value."""


def read(container: Container) -> Trajectories | None:
    """A file of The Well; None where the groups are others."""
    if "dimensions/time" not in container or not any(name.split("/")[0] in GROUPS for name in container.arrays):
        return None
    listed = container.attribute("spatial_dims", of="dimensions")
    if listed is None or not 1 <= np.size(listed) <= 3:
        raise mismatch(container.path, "dimensions@spatial_dims", "the names of one to three axes", f"{listed!r}")
    axes = tuple(str(name) for name in np.atleast_1d(listed))
    centres = [_shared(container, f"dimensions/{axis}") for axis in axes]
    clock = _shared(container, "dimensions/time")
    samples = int(container.attribute("n_trajectories") or 1)
    sizes = (samples, len(clock), *map(len, centres))
    found = list(_fields(container, axes, sizes))
    steady = len(clock) == 1 and {varies for _, _, varies in found} == {True, False}
    inputs = [entry for entry in found if steady and not entry[2]]
    values = [entry for entry in found if not steady or entry[2]]
    constants, params = _scalars(container, samples)
    return Trajectories(
        values=LazyArray.stack([part for part, _, _ in values], sizes),
        grid=grid_around(centres, _boundary(container, axes)),
        times=stored_times(container.path, "dimensions/time", clock, len(clock)),
        fields=tuple(FieldSpec(name) for _, names, _ in values for name in names),
        inputs=LazyArray.stack([part for part, _, _ in inputs], sizes) if inputs else None,
        input_fields=tuple(FieldSpec(name) for _, names, _ in inputs for name in names),
        params=np.stack(list(params.values()), axis=1) if params else None,
        param_names=tuple(params),
        name=str(container.attribute("dataset_name") or ""),
        constants=constants,
    )


def write(path: Path, data: Trajectories, dtype: Any = np.float32) -> None:
    """Write a set in The Well's layout; components `name_x`, `name_y`, .. of a complete vector become one."""
    dims = len(data.grid.shape)
    if not data.grid.is_uniform():
        raise ConfigError("The Well's files have equal cells; this set has others, write it as .h5 instead")
    with h5py.File(path, "w") as file:
        file.attrs.update(dataset_name=data.name, grid_type="cartesian", n_spatial_dims=dims)
        file.attrs.update(n_trajectories=data.num_samples, simulation_parameters=list(data.constants))
        file.attrs.update(data.constants)
        place = file.create_group("dimensions")
        place.attrs["spatial_dims"] = list(SPACE[:dims])
        _dataset(place, "time", data.times, sample_varying=False)
        for axis, centres in zip(SPACE, data.grid.coordinates, strict=False):
            _dataset(place, axis, centres, sample_varying=False, time_varying=False)
        edges = file.create_group("boundary_conditions")
        for axis, kind, size in zip(SPACE, data.grid.boundary, data.grid.shape, strict=False):
            edge = edges.create_group(f"{axis}_{kind}")
            edge.attrs.update(associated_dims=[axis], associated_fields=[], bc_type=TYPES[kind])
            edge.attrs.update(sample_varying=False, time_varying=False)
            edge["mask"], edge["values"] = np.isin(np.arange(size), (0, size - 1)), np.zeros(2, dtype=np.float32)
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = [*data.constants, *data.param_names]
        for name, number in data.constants.items():
            _dataset(scalars, name, [number], sample_varying=False, time_varying=False)
        for column, name in enumerate(data.param_names):
            _dataset(scalars, name, np.asarray(data.params)[:, column], sample_varying=True, time_varying=False)
        groups = [file.create_group(name, track_order=True) for name in GROUPS]
        _write_fields(groups, data.values, data.fields, dtype)
        if data.inputs is not None:
            _write_fields(groups, data.inputs, data.input_fields, dtype, time=False)
        for group in groups:
            group.attrs["field_names"] = list(group)


def _fields(
    container: Container, axes: tuple[str, ...], sizes: tuple[int, ...]
) -> Iterator[tuple[Part, tuple[str, ...], bool]]:
    """Every field with the names of its components, and whether it varies in time."""
    for rank, group in enumerate(GROUPS):
        for key in [name for name in container.arrays if name.startswith(f"{group}/")]:
            source, said = container.array(key), container.attributes.get(key, {})
            along = np.atleast_1d(said.get("dim_varying", [True] * len(axes)))
            varies = bool(said.get("time_varying", True))
            stored = (bool(said.get("sample_varying", True)), varies, *map(bool, along))
            lead = tuple(size for size, kept in zip(sizes, stored, strict=True) if kept)
            components = len(axes) ** rank
            rest = source.shape[len(lead) :]
            if source.shape[: len(lead)] != lead or int(np.prod(rest, dtype=int)) != components:
                raise mismatch(container.path, key, f"{lead} and {components} components", f"shape {source.shape}")
            name = key.removeprefix(f"{group}/")
            names = tuple("_".join([name, "".join(part)]) if part else name for part in product(axes, repeat=rank))
            places = iter(range(len(lead)))
            yield Part(source, (*(next(places) if kept else None for kept in stored), None)), names, varies


def _shared(container: Container, key: str) -> npt.NDArray[np.float64]:
    """Coordinates or times that are the same for all samples, also where they are stored for each."""
    source = container.array(key)
    if len(source.shape) < 2:
        return container.vector(key)
    rows = read_whole(source).astype(np.float64).reshape(-1, source.shape[-1])
    if not (rows == rows[0]).all():
        raise mismatch(container.path, key, "the same numbers for all samples", "others for each")
    return np.asarray(rows[0])


def _boundary(container: Container, axes: tuple[str, ...]) -> tuple[Boundary, ...]:
    """The boundary of each axis; empty unless all are known."""
    known: dict[str, Boundary] = {}
    for name, said in container.attributes.items():
        if not name.startswith("boundary_conditions/") or name.count("/") > 1:
            continue
        kind = BOUNDARIES.get(str(said.get("bc_type", "")).lower())
        for axis in np.atleast_1d(said.get("associated_dims", [])):
            if kind is not None:
                known.setdefault(str(axis), kind)
    return tuple(known[axis] for axis in axes) if set(axes) <= known.keys() else ()


def _scalars(container: Container, samples: int) -> tuple[dict[str, float], dict[str, npt.NDArray[np.float64]]]:
    """Numbers that all samples share, and those that differ between samples."""
    root: Mapping[str, Any] = container.attributes.get("", {})
    names = [str(name) for name in np.atleast_1d(root.get("simulation_parameters", []))]
    constants = {name: float(root[name]) for name in names if np.size(root.get(name, ())) == 1}
    params: dict[str, npt.NDArray[np.float64]] = {}
    for key in [name for name in container.arrays if name.startswith("scalars/")]:
        said, name = container.attributes.get(key, {}), key.removeprefix("scalars/")
        if bool(said.get("time_varying", False)):
            continue
        numbers = container.vector(key)
        if bool(said.get("sample_varying", False)):
            constants.pop(name, None)
            params[name] = container.table(key, samples)[:, 0]
        elif len(numbers) == 1:
            constants[name] = float(numbers[0])
    return constants, params


def _dataset(group: h5py.Group, name: str, numbers: Any, **varying: bool) -> None:
    group.create_dataset(name, data=np.asarray(numbers, dtype=np.float32)).attrs.update(varying)


def _write_fields(
    groups: list[h5py.Group], array: Array, fields: tuple[FieldSpec, ...], dtype: Any, *, time: bool = True
) -> None:
    """Each field, or each complete vector of fields, as one dataset, block by block of samples."""
    names, dims = [spec.name for spec in fields], len(array.shape) - 3
    bases = [name.removesuffix("_x") for name in names if dims > 1 and name.endswith("_x")]
    parts = {base: [f"{base}_{axis}" for axis in SPACE[:dims]] for base in bases}
    vectors = {base: members for base, members in parts.items() if set(members) <= set(names)}
    inside = {member for members in vectors.values() for member in members}
    lead = array.shape[:-1] if time else (array.shape[0], *array.shape[2:-1])
    targets = []
    for name, members in {**{name: [name] for name in names if name not in inside}, **vectors}.items():
        shape = (*lead, dims) if name in vectors else lead
        target = groups[name in vectors].create_dataset(name, shape, np.dtype(dtype or array.dtype))
        target.attrs.update(dim_varying=[True] * dims, sample_varying=True, time_varying=time)
        targets.append((target, [names.index(member) for member in members]))
    for first, block in blocks(array):
        for target, channels in targets:
            target[first : first + len(block)] = block[..., channels].reshape(len(block), *target.shape[1:])
