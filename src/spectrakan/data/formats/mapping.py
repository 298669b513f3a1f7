"""A mapping says which array of a file is which field and which axis is what; it makes any file readable.

Layouts that are known by names (plain arrays, named axes) are turned into a mapping too and read here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from spectrakan.config import build_settings, read_yaml, settings
from spectrakan.data.container import Container, GroupedSource
from spectrakan.data.decoding import mismatch, regular_file
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.errors import ConfigError
from spectrakan.fields import Boundary, FieldSpec, Grid, Source, Trajectories
from spectrakan.fields.grid import Numbers, grid_around

SpaceAxis = Literal["x", "y", "z"]
SPACE: tuple[SpaceAxis, ...] = get_args(SpaceAxis)
Axis = Literal["sample", "time", "x", "y", "z", "channel", "drop"]

MAPPING_HELP = (resources.files("spectrakan.data") / "formats" / "mapping_help.txt").read_text(encoding="utf-8")
"""Explanation of a mapping, for the command line."""

REMEDY = "describe the arrays by a mapping; `spectrakan check --explain-mapping` shows how"
"""What to do with arrays whose meaning is not known."""


@settings
class MappedArray:
    """One stored array and what it holds."""

    array: str
    """Name of the array; in a group `group/name`; with a `*` all that match are samples, sorted by name, run2 before
    run10."""
    axes: Annotated[tuple[Axis, ...], Field(min_length=1)]
    """What each stored axis is, in stored order; `drop` for an axis of size one without a meaning."""
    fields: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the fields: one, or one for each entry of the channel axis."""
    units: tuple[str, ...] = ()
    """Units of the fields, in the same order; empty when unknown."""
    positive: tuple[str, ...] = ()
    """Names of the fields that cannot be zero or below."""

    def __post_init__(self) -> None:
        repeated = [axis for axis in self.axes if axis != "drop" and self.axes.count(axis) > 1]
        if repeated:
            raise ConfigError(f"array '{self.array}': axis '{repeated[0]}' is named twice")
        if "channel" not in self.axes and len(self.fields) != 1:
            raise ConfigError(f"array '{self.array}' has no channel axis, so it holds one field, not {self.fields}")
        if self.units and len(self.units) != len(self.fields):
            raise ConfigError(f"array '{self.array}': {len(self.fields)} fields need as many units or none")
        if unknown := set(self.positive) - set(self.fields):
            raise ConfigError(f"array '{self.array}': positive names {sorted(unknown)}, not among its fields")

    def specs(self) -> tuple[FieldSpec, ...]:
        """The fields, as trajectories name them."""
        units = self.units or ("",) * len(self.fields)
        return tuple(
            FieldSpec(name, unit, name in self.positive) for name, unit in zip(self.fields, units, strict=True)
        )


@settings
class DataMapping:
    """What the arrays of a foreign file mean."""

    values: Annotated[tuple[MappedArray, ...], Field(min_length=1)]
    """The solution; several arrays are stacked as channels."""
    inputs: tuple[MappedArray, ...] = ()
    """Input fields of a steady problem; empty where the input is an earlier state."""
    coordinates: dict[SpaceAxis, str] = field(default_factory=dict)
    """Array of cell centres along each axis; without them the domain is the unit box."""
    times: str = ""
    """Array of the times of the frames; without it frames are spread evenly over [0, 1]."""
    params: dict[str, str] = field(default_factory=dict)
    """Arrays with one number for each sample, by the name of the parameter."""
    constants: dict[str, float] = field(default_factory=dict)
    """Physical parameters that all samples share."""
    boundary: tuple[Boundary, ...] = ()
    """What happens at the ends of each axis; empty when unknown."""
    latitude: Literal["", "x", "y", "z"] = ""
    """The axis that is a latitude in degrees, whose cells are weighted by the sine; empty when none is."""
    name: str = ""
    """Name of the problem that the data belong to; empty when unknown."""

    def __post_init__(self) -> None:
        spaces = {frozenset(entry.axes) & set(SPACE) for entry in (*self.values, *self.inputs)}
        allowed = [frozenset(SPACE[:dims]) for dims in (1, 2, 3)]
        if len(spaces) != 1 or next(iter(spaces)) not in allowed:
            found = " and ".join(str(sorted(space)) for space in spaces)
            raise ConfigError(f"all mapped arrays need the same space axes, x or x, y or x, y, z; got {found}")
        if self.coordinates and set(self.coordinates) != next(iter(spaces)):
            raise ConfigError(f"coordinates must name all of {sorted(next(iter(spaces)))} or none")

    @property
    def space(self) -> tuple[SpaceAxis, ...]:
        """Names of the space axes."""
        return tuple(axis for axis in SPACE if axis in self.values[0].axes)


def as_mapping(given: DataMapping | Mapping[str, Any] | Path | str | None) -> DataMapping | None:
    """A mapping from any of its forms: settings, a dictionary, or the path of a YAML file."""
    if given is None or isinstance(given, DataMapping):
        return given
    if not isinstance(given, Mapping):
        regular_file(Path(given))
        given = read_yaml(Path(given))
    return build_settings(DataMapping, given, where="mapping")


def read(container: Container, mapping: DataMapping) -> Trajectories:
    """The trajectories that a mapping finds in a file."""
    values = _stack(container, mapping.values, mapping.space)
    inputs = _stack(container, mapping.inputs, mapping.space) if mapping.inputs else None
    samples, frames, *space, _ = values.shape
    grid, flips = _grid(container, mapping, space)
    clock = container.vector(mapping.times) if mapping.times else np.linspace(0.0, 1.0, frames)
    columns = [container.table(key, samples) for key in mapping.params.values()]
    turned = (slice(None), slice(None), *(slice(None, None, -1 if flip else 1) for flip in flips))
    return Trajectories(
        values=values.narrow(*turned),
        grid=grid,
        times=stored_times(container.path, mapping.times, clock, frames),
        fields=tuple(spec for entry in mapping.values for spec in entry.specs()),
        inputs=None if inputs is None else inputs.narrow(*turned),
        input_fields=tuple(spec for entry in mapping.inputs for spec in entry.specs()),
        params=np.concatenate(columns, axis=1) if columns else None,
        param_names=tuple(mapping.params),
        name=mapping.name,
        constants=mapping.constants,
    )


def _stack(container: Container, entries: Sequence[MappedArray], space: Sequence[str]) -> LazyArray:
    parts: list[Part] = []
    for entry in entries:
        source, axes = _source(container, entry)
        dropped = [size for size, axis in zip(source.shape, axes, strict=False) if axis == "drop"]
        if len(source.shape) != len(axes) or any(size != 1 for size in dropped):
            expected = f"axes ({', '.join(axes)}){', size 1 of an axis to drop' if dropped else ''}"
            raise mismatch(container.path, entry.array, expected, f"shape {source.shape}")
        order = ("sample", "time", *space, "channel")
        part = Part(source, tuple(axes.index(axis) if axis in axes else None for axis in order))
        if part.shape[-1] != len(entry.fields):
            expected = f"{len(entry.fields)} channels ({', '.join(entry.fields)})"
            raise mismatch(container.path, entry.array, expected, f"{part.shape[-1]}")
        if parts and part.shape[:-1] != parts[0].shape[:-1]:
            expected = f"samples, time and space of '{entries[0].array}', {parts[0].shape[:-1]}"
            raise mismatch(container.path, entry.array, expected, f"{part.shape[:-1]}")
        parts.append(part)
    return LazyArray.stack(parts)


def _source(container: Container, entry: MappedArray) -> tuple[Source, tuple[str, ...]]:
    if "*" not in entry.array:
        return container.array(entry.array), entry.axes
    found = (name for name in container.arrays if fnmatchcase(name, entry.array))
    names = sorted(found, key=lambda name: re.sub(r"\d+", lambda digits: digits[0].zfill(20), name))
    if not names or "sample" in entry.axes:
        came = f"none among {container.describe()}" if not names else "an axis 'sample' inside each"
        raise mismatch(container.path, entry.array, "arrays of one sample each", came)
    return group_samples(container, names), ("sample", *entry.axes)


def group_samples(container: Container, names: Sequence[str]) -> GroupedSource:
    """Arrays of one sample each as one array; their shapes must be equal."""
    members = tuple(container.array(name) for name in names)
    for name, member in zip(names, members, strict=True):
        if member.shape != members[0].shape:
            raise mismatch(container.path, name, f"shape {members[0].shape} as in {names[0]}", f"{member.shape}")
    return GroupedSource(members)


def _grid(container: Container, mapping: DataMapping, shape: Sequence[int]) -> tuple[Grid, tuple[bool, ...]]:
    if mapping.boundary and len(mapping.boundary) != len(shape):
        raise ConfigError(f"boundary names {len(mapping.boundary)} axes, the data have {len(shape)}")
    if not mapping.coordinates:
        return Grid.uniform(tuple(shape), boundary=mapping.boundary), (False,) * len(shape)
    centres, flips = [], []
    for axis, size in zip(mapping.space, shape, strict=True):
        key = mapping.coordinates[axis]
        stored, flip = increasing(container.vector(key))
        if len(stored) != size:
            raise mismatch(container.path, key, f"{size} cell centres along {axis}", f"{len(stored)}")
        centres.append(stored)
        flips.append(flip)
    latitude = mapping.space.index(mapping.latitude) if mapping.latitude else None
    return grid_around(centres, mapping.boundary, latitude=latitude), tuple(flips)


def increasing(centres: Numbers) -> tuple[Numbers, bool]:
    """Coordinates in increasing order, and whether they were reversed for it."""
    turned = len(centres) > 1 and bool(centres[-1] < centres[0])
    return (centres[::-1].copy() if turned else centres), turned


def stored_times(path: Path, key: str, stored: Numbers, frames: int) -> Numbers:
    """Stored times of the frames; one entry too many at the end, as PDEBench writes it, is dropped."""
    if len(stored) not in {frames, frames + 1}:
        raise mismatch(path, key, f"one time for each of {frames} frames", f"{len(stored)}")
    times = stored[:frames]
    if not (np.diff(times) > 0).all():
        index = int(np.flatnonzero(np.diff(times) <= 0)[0])
        found = f"{times[index]} before {times[index + 1]} at index {index}"
        raise mismatch(path, key, "increasing times", found)
    return times
