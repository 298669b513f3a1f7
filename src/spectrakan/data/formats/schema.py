"""The description that files of our own carry: what the arrays are, and a digest of the small ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.config import as_mapping, build_settings, settings
from spectrakan.data.decoding import mismatch
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Array, Boundary, FieldSpec, Grid, Trajectories

FORMAT = "spectrakan-trajectories"
VERSION = 1
AXES = ("x", "y", "z")
SCHEMA = "schema"
"""Name of the attribute that holds the description as JSON."""


@settings
class Schema:
    """What a file of our own says about itself."""

    format: str
    """Always `spectrakan-trajectories`."""
    version: int
    """Version of the layout, 1."""
    shape: tuple[int, ...]
    """Shape of `values`: (samples, time, *space, channel)."""
    dtype: str
    """Type of the numbers of `values`."""
    fields: tuple[FieldSpec, ...]
    """What the channels of `values` are."""
    input_dtype: str = ""
    """Type of the numbers of `inputs`; empty where there are none."""
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
    digest: str = ""
    """SHA-256 over all arrays but `values` and `inputs`."""


def describe(trajectories: Trajectories, dtype: Any) -> str:
    """The schema as JSON of a set whose fields are stored as `dtype` (None: as they are); empty sets are refused."""
    shape = tuple(int(size) for size in trajectories.values.shape)
    if 0 in shape:
        raise ShapeError(f"cannot store an empty set of shape {shape}")
    inputs = trajectories.inputs
    schema = Schema(
        format=FORMAT,
        version=VERSION,
        shape=shape,
        dtype=stored_type(trajectories.values, dtype).name,
        fields=trajectories.fields,
        input_dtype="" if inputs is None else stored_type(inputs, dtype).name,
        input_fields=trajectories.input_fields,
        param_names=trajectories.param_names,
        constants={name: float(number) for name, number in trajectories.constants.items()},
        origin=dict(trajectories.origin),
        boundary=trajectories.grid.boundary,
        problem=trajectories.name,
        digest=digest(small_arrays(trajectories)),
    )
    return json.dumps(as_mapping(schema), sort_keys=True, allow_nan=False)


def stored_type(array: Array, dtype: Any) -> np.dtype[Any]:
    """The type that numbers are stored with: little-endian; truth values become 0 and 1."""
    kind = np.dtype(array.dtype if dtype is None else dtype)
    return np.dtype(np.uint8) if kind.kind == "b" else kind.newbyteorder("<")


def small_arrays(trajectories: Trajectories) -> dict[str, npt.NDArray[np.float64]]:
    """Everything but the fields: times, parameters, and three arrays for each axis of the grid."""
    grid = trajectories.grid
    arrays = {"times": np.asarray(trajectories.times, dtype=np.float64)}
    if trajectories.params is not None:
        arrays["params"] = np.asarray(trajectories.params, dtype=np.float64)
    for axis, *numbers in zip(AXES, grid.coordinates, grid.edges, grid.weights, strict=False):
        for name, tensor in zip(("centres", "edges", "weights"), numbers, strict=True):
            arrays[f"grid/{axis}/{name}"] = tensor.to(torch.float64).numpy()
    return arrays


def digest(arrays: Mapping[str, npt.NDArray[np.float64]]) -> str:
    """SHA-256 over names, shapes and numbers."""
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.shape}\n".encode())
        total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()


def from_text(path: Path, text: Any) -> Schema:
    """The schema that a file carries; an error says what is wrong with it."""
    try:
        entries = json.loads(text)
    except (TypeError, ValueError, RecursionError) as problem:
        raise mismatch(path, SCHEMA, "a JSON text", str(problem)) from None
    if not isinstance(entries, dict) or entries.get("format") != FORMAT:
        raise mismatch(path, SCHEMA, f"format '{FORMAT}'", f"{text!r:.80}")
    if entries.get("version") != VERSION:
        remedy = "a newer release of spectrakan may read it"
        raise mismatch(path, SCHEMA, f"version {VERSION}", f"{entries.get('version')!r}", remedy)
    try:
        schema = build_settings(Schema, entries)
    except ConfigError as problem:
        raise mismatch(path, SCHEMA, "a schema of version 1", str(problem)) from None
    if not 4 <= len(schema.shape) <= 6 or len(schema.fields) != schema.shape[-1]:
        found = f"shape {schema.shape} for {len(schema.fields)} fields"
        raise mismatch(path, SCHEMA, "a shape (samples, time, *space, channel)", found)
    return schema


def assemble(
    path: Path, schema: Schema, fields: tuple[Array, Array | None], small: Mapping[str, npt.NDArray[np.float64]]
) -> Trajectories:
    """Trajectories from a schema, its (values, inputs) and its small arrays, all checked against it."""
    if digest(small) != schema.digest:
        raise mismatch(path, "times, params, grid", "the numbers of the recorded SHA-256", "others")
    axes = AXES[: len(schema.shape) - 3]
    kinds = ("centres", "edges", "weights")
    needed = {"times", *(f"grid/{axis}/{kind}" for axis in axes for kind in kinds)}
    if missing := sorted(needed - small.keys()):
        raise mismatch(path, missing[0], "an array", "nothing")
    centres, edges, weights = (
        tuple(torch.from_numpy(small[f"grid/{axis}/{kind}"].copy()) for axis in axes) for kind in kinds
    )
    values, inputs = fields
    for key, array, shape, dtype in (
        ("values", values, schema.shape, schema.dtype),
        ("inputs", inputs, None, schema.input_dtype),
    ):
        if array is not None and (array.dtype.name != dtype or array.shape != (shape or array.shape)):
            expected = f"shape {shape} and type {dtype}" if shape else f"type {dtype}"
            raise mismatch(path, key, expected, f"shape {array.shape} and type {array.dtype.name}")
    return Trajectories(
        values=values,
        grid=Grid(centres, edges, weights, schema.boundary),
        times=small["times"],
        fields=schema.fields,
        inputs=inputs,
        input_fields=schema.input_fields,
        params=small.get("params"),
        param_names=schema.param_names,
        name=schema.problem,
        constants=schema.constants,
        origin=schema.origin,
    )
