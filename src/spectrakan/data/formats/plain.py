"""Arrays with customary names and no other explanation, as people save them in npz, .pt, .mat and HDF5.

| arrays | meaning |
|---|---|
| `values` (sample, time, *space, channel) | our order; `inputs`, `times`, `x`, `y`, `z` if there are |
| `coeff`, `sol` (sample, x[, y]) | steady: coefficient to solution |
| `x`, `y` (sample, x[, y]) | steady: input to output, as neuraloperator saves its sets |
| `a`, `u` (sample, x[, y]) | steady: initial state to final state, as the FNO authors save theirs |
| `u` (sample, x[, y], time), `t` | in time; the initial state `a` is left out for it is at no stored time |
"""

from __future__ import annotations

from spectrakan.data.container import Container
from spectrakan.data.decoding import mismatch
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats.mapping import SPACE, Axis, DataMapping, MappedArray
from spectrakan.data.source import read_whole
from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories

PAIRS = (
    ("coeff", "sol", "coefficient", "solution"),
    ("x", "y", "input", "output"),
    ("a", "u", "initial", "final"),
)
"""Arrays of a steady pair, and the names that their fields get."""


def recognises(container: Container) -> bool:
    """Whether the names, and the ranks that go with them, are among those above."""
    return _mapping(container) is not None


def read(container: Container) -> Trajectories:
    """A file with customary names."""
    mapping = _mapping(container)
    if mapping is None:
        raise DataFormatError(f"'{container.path}': arrays of unknown meaning: {container.describe()}")
    return mapped.read(container, mapping)


def _mapping(container: Container) -> DataMapping | None:
    if "values" in container:
        return _canonical(container)
    if {"u", "t"} <= container.arrays.keys() and len(container.arrays["u"].shape) in {3, 4}:
        axes: tuple[Axis, ...] = ("sample", *SPACE[: len(container.arrays["u"].shape) - 2], "time")
        return DataMapping(values=(MappedArray(array="u", axes=axes, fields=("u",)),), times="t")
    for given, wanted, before, after in PAIRS:
        if {given, wanted} <= container.arrays.keys() and len(container.arrays[given].shape) in {2, 3}:
            axes = ("sample", *SPACE[: len(container.arrays[given].shape) - 1])
            return DataMapping(
                values=(MappedArray(array=wanted, axes=axes, fields=(after,)),),
                inputs=(MappedArray(array=given, axes=axes, fields=(before,)),),
            )
    return None


def _canonical(container: Container) -> DataMapping:
    shape = container.array("values").shape
    dims = len(shape) - 3
    if not 1 <= dims <= 3:
        raise mismatch(container.path, "values", "axes (sample, time, x[, y[, z]], channel)", f"shape {shape}")
    axes: tuple[Axis, ...] = ("sample", "time", *SPACE[:dims], "channel")
    arrays = {"values": "fields", "inputs": "input_fields"}
    entries = {
        key: (MappedArray(array=key, axes=axes, fields=_names(container, key, names)),)
        for key, names in arrays.items()
        if key in container
    }
    located = all(axis in container for axis in SPACE[:dims])
    return DataMapping(
        values=entries["values"],
        inputs=entries.get("inputs", ()),
        coordinates={axis: axis for axis in SPACE[:dims]} if located else {},
        times="times" if "times" in container else "",
    )


def _names(container: Container, key: str, names: str) -> tuple[str, ...]:
    """Names of the channels: stored as an array of text, else u0, u1, ... ."""
    channels = container.array(key).shape[-1]
    stored = container.arrays.get(names)
    if stored is None or stored.dtype.kind not in "US" or len(stored.shape) != 1:
        return ("u",) if channels == 1 else tuple(f"u{channel}" for channel in range(channels))
    listed = tuple(x.decode("utf-8", "replace") if isinstance(x, bytes) else str(x) for x in read_whole(stored))
    if len(listed) != channels:
        raise mismatch(container.path, names, f"a name for each of {channels} channels of '{key}'", f"{listed}")
    return listed
