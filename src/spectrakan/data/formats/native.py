"""Files of our own: HDF5 with `values`, `inputs`, `times`, `params`, `grid` and a JSON schema.

All arrays carry HDF5's Fletcher-32 checksum per chunk, and the file's own structure is of the newest HDF5 kind, whose
parts carry checksums too: a damaged file is refused, not read wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.config import as_mapping, build_settings, settings
from spectrakan.data.container import Container, read_whole
from spectrakan.data.decoding import mismatch
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.errors import ConfigError
from spectrakan.fields import Boundary, FieldSpec, Grid, Trajectories

FORMAT = "spectrakan-trajectories"
VERSION = 1
AXES = ("x", "y", "z")
SCHEMA = "schema"
"""Name of the attribute that holds the description as JSON."""
KINDS = ("centres", "edges", "weights")
"""Arrays of each axis of the grid."""


@settings
class Schema:
    """What a file of our own says about itself, beside its arrays."""

    format: str
    """Always `spectrakan-trajectories`."""
    version: int
    """Version of the layout, 1."""
    fields: tuple[FieldSpec, ...]
    """What the channels of `values` are."""
    input_fields: tuple[FieldSpec, ...] = ()
    """What the channels of `inputs` are."""
    param_names: tuple[str, ...] = ()
    """Names of the columns of `params`."""
    constants: dict[str, float] = field(default_factory=dict)
    """Physical parameters that all samples share."""
    origin: dict[str, Any] = field(default_factory=dict)
    """Seed and parameters that generated samples were made from; empty for others."""
    boundary: tuple[Boundary, ...] = ()
    """What happens at the ends of each axis; empty when unknown."""
    problem: str = ""
    """Name of the problem; empty when unknown."""


def describe(trajectories: Trajectories) -> str:
    """The schema of a set as JSON."""
    schema = Schema(
        format=FORMAT,
        version=VERSION,
        fields=trajectories.fields,
        input_fields=trajectories.input_fields,
        param_names=trajectories.param_names,
        constants={name: float(number) for name, number in trajectories.constants.items()},
        origin=dict(trajectories.origin),
        boundary=trajectories.grid.boundary,
        problem=trajectories.name,
    )
    return json.dumps(as_mapping(schema), sort_keys=True, allow_nan=False)


def small_arrays(trajectories: Trajectories) -> dict[str, npt.NDArray[np.float64]]:
    """Everything but the fields: times, parameters, and three arrays for each axis of the grid."""
    grid = trajectories.grid
    arrays = {"times": np.asarray(trajectories.times, dtype=np.float64)}
    if trajectories.params is not None:
        arrays["params"] = np.asarray(trajectories.params, dtype=np.float64)
    for axis, *numbers in zip(AXES, grid.coordinates, grid.edges, grid.weights, strict=False):
        for name, tensor in zip(KINDS, numbers, strict=True):
            arrays[f"grid/{axis}/{name}"] = tensor.to(torch.float64).numpy()
    return arrays


def read(container: Container) -> Trajectories | None:
    """A file of our own, checked against its schema; None without a schema beside `values`."""
    if container.attribute(SCHEMA) is None or "values" not in container:
        return None
    schema = _schema(container.path, str(container.attribute(SCHEMA)))
    values = _whole(container, "values")
    axes = AXES[: values.ndim - 3]
    names = ["times", *(f"grid/{axis}/{kind}" for axis in axes for kind in KINDS), "params"]
    small = {
        name: read_whole(container.array(name)).astype(np.float64)
        for name in names
        if name != "params" or name in container
    }
    centres, edges, weights = (
        tuple(torch.from_numpy(small[f"grid/{axis}/{kind}"]) for axis in axes) for kind in KINDS
    )
    return Trajectories(
        values=values,
        grid=Grid(centres, edges, weights, schema.boundary),
        times=small["times"],
        fields=schema.fields,
        inputs=_whole(container, "inputs") if schema.input_fields else None,
        input_fields=schema.input_fields,
        params=small.get("params"),
        param_names=schema.param_names,
        name=schema.problem,
        constants=schema.constants,
        origin=schema.origin,
    )


def _whole(container: Container, key: str) -> LazyArray:
    source = container.array(key)
    if not 4 <= len(source.shape) <= 6:
        raise mismatch(container.path, key, "axes (samples, time, *space, channel)", f"shape {source.shape}")
    return LazyArray.stack([Part(source, tuple(range(len(source.shape))))])


def _schema(path: Path, text: str) -> Schema:
    """The schema that a file carries; an error says what is wrong with it."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise mismatch(path, SCHEMA, "a JSON text", str(problem)) from None
    if not isinstance(entries, Mapping) or entries.get("format") != FORMAT:
        raise mismatch(path, SCHEMA, f"format '{FORMAT}'", f"{text!r:.80}")
    if entries.get("version") != VERSION:
        remedy = "a newer release of spectrakan may read it"
        raise mismatch(path, SCHEMA, f"version {VERSION}", f"{entries.get('version')!r}", remedy)
    try:
        return build_settings(Schema, entries)
    except ConfigError as problem:
        raise mismatch(path, SCHEMA, "a schema of version 1", str(problem)) from None
