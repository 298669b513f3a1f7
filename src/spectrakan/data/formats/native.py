"""Files of our own: HDF5 with `values`, `inputs`, `times`, `params`, `grid` and a JSON schema.

All arrays carry HDF5's Fletcher-32 checksum per chunk, and the file's own structure is of the newest HDF5 kind, whose
parts carry checksums too: a damaged file is refused, not read wrongly.
"""

import json
import math
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal

import h5py
import numpy as np
import torch

from spectrakan.config import as_mapping, build_settings, settings
from spectrakan.data.container import Container, read_whole
from spectrakan.data.decoding import mismatch
from spectrakan.data.formats.mapping import SPACE
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.errors import ConfigError
from spectrakan.fields import Array, Boundary, FieldSpec, Grid, Trajectories, blocks

FORMAT: Final = "spectrakan-trajectories"
VERSION: Final = 1
SCHEMA = "schema"
"""Name of the attribute that holds the description as JSON."""
KINDS = ("centres", "edges", "weights")
"""Arrays of each axis of the grid."""
FACTS = ("fields", "input_fields", "param_names", "constants", "origin")
"""What a schema and trajectories call by the same name."""
CHUNK_BYTES = 2**20
"""A chunk holds whole frames of one sample, at most about this much."""
CHUNK_WASTE = 0.05
"""Largest share of frames that chunks may reserve beyond those that exist."""


@settings
class Schema:
    """What a file of our own says about itself, beside its arrays."""

    format: Literal["spectrakan-trajectories"]
    """Always `spectrakan-trajectories`."""
    version: Literal[1]
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


def write(path: Path, trajectories: Trajectories, dtype: Any) -> None:
    """Write a file of our own: fields sample block by sample block, everything else in double precision."""
    grid = trajectories.grid
    facts: dict[str, Any] = {name: getattr(trajectories, name) for name in FACTS}
    facts["constants"] = {name: float(number) for name, number in trajectories.constants.items()}
    schema = Schema(format=FORMAT, version=VERSION, boundary=grid.boundary, problem=trajectories.name, **facts)
    small: dict[str, Any] = {"times": trajectories.times, "params": trajectories.params}
    for axis, *numbers in zip(SPACE, grid.coordinates, grid.edges, grid.weights, strict=False):
        small |= {f"grid/{axis}/{kind}": tensor for kind, tensor in zip(KINDS, numbers, strict=True)}
    with h5py.File(path, "w", libver="latest") as file:
        for name, array in small.items():
            if array is not None:
                exact = np.asarray(array, dtype="<f8")
                file.create_dataset(name, data=exact, chunks=exact.shape, fletcher32=True)
        for name, large in {"values": trajectories.values, "inputs": trajectories.inputs}.items():
            if large is not None:
                kind = stored_type(large, dtype)
                chunks = chunk_shape(large.shape, kind)
                target = file.create_dataset(name, large.shape, kind, chunks=chunks, fletcher32=True)
                for first, block in blocks(large):
                    target[first : first + len(block)] = block.astype(kind, copy=False)
        # Fixed length: text of variable length lives in a heap that has no checksum.
        text = json.dumps(as_mapping(schema), sort_keys=True, allow_nan=False)
        file.attrs[SCHEMA] = np.bytes_(text.encode())


def stored_type(array: Array, dtype: Any) -> np.dtype[Any]:
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


def read(container: Container) -> Trajectories | None:
    """A file of our own, checked against its schema; None without a schema beside `values`."""
    if container.attribute(SCHEMA) is None or "values" not in container:
        return None
    schema = _schema(container.path, str(container.attribute(SCHEMA)))
    values = _whole(container, "values")
    axes = SPACE[: values.ndim - 3]
    names = ["times", *(f"grid/{axis}/{kind}" for axis in axes for kind in KINDS)]
    names += ["params"] if "params" in container else []
    small = {name: read_whole(container.array(name)).astype(np.float64) for name in names}
    centres, edges, weights = (
        tuple(torch.from_numpy(small[f"grid/{axis}/{kind}"]) for axis in axes) for kind in KINDS
    )
    facts: dict[str, Any] = {name: getattr(schema, name) for name in FACTS}
    return Trajectories(
        values=values,
        grid=Grid(centres, edges, weights, schema.boundary),
        times=small["times"],
        inputs=_whole(container, "inputs") if schema.input_fields else None,
        params=small.get("params"),
        name=schema.problem,
        **facts,
    )


def _whole(container: Container, key: str) -> LazyArray:
    source = container.array(key)
    if not 4 <= len(source.shape) <= 6:
        raise mismatch(container.path, key, "axes (samples, time, *space, channel)", f"shape {source.shape}")
    return LazyArray.stack([Part(source, tuple(range(len(source.shape))))])


def _schema(path: Path, text: str) -> Schema:
    """The schema that a file carries; an error says what is wrong with it."""
    try:
        return build_settings(Schema, json.loads(text))
    except (ValueError, RecursionError, ConfigError) as problem:
        remedy = "a newer release of spectrakan may read other versions"
        raise mismatch(path, SCHEMA, f"'{FORMAT}' of version {VERSION} in JSON", str(problem), remedy) from None
