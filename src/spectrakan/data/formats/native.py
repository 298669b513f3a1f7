"""Files of our own: HDF5 with `values`, `inputs`, `times`, `params`, `grid` and a JSON schema.

Fields carry HDF5's Fletcher-32 checksum per chunk, the file's own structure is of the newest HDF5 kind, whose
parts carry checksums too, and the small arrays are covered by a SHA-256 in the schema: a damaged file is
refused, not read wrongly.
"""

from __future__ import annotations

import numpy as np

from spectrakan.data.container import Container
from spectrakan.data.formats import schema as own
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.data.source import read_whole
from spectrakan.fields import Trajectories


def recognises(container: Container) -> bool:
    """Whether the file carries our schema beside `values`."""
    return container.attribute(own.SCHEMA) is not None and "values" in container


def read(container: Container) -> Trajectories:
    """A file of our own, checked against its schema."""
    schema = own.from_text(container.path, str(container.attribute(own.SCHEMA)))
    small = {
        name: np.asarray(read_whole(container.array(name)))
        for name in container.arrays
        if name in {"times", "params"} or name.startswith("grid/")
    }
    axes = ("sample", "time", *own.AXES[: len(schema.shape) - 3], "channel")
    inputs = _whole(container, "inputs", axes) if schema.input_dtype else None
    return own.assemble(container.path, schema, (_whole(container, "values", axes), inputs), small)


def _whole(container: Container, key: str, axes: tuple[str, ...]) -> LazyArray:
    return LazyArray.stack([Part(container.ranked(key, axes), tuple(range(len(axes))))])
