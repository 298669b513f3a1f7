"""Arrays with customary names and no other explanation, as people save them in npz, .pt, .mat and HDF5.

| arrays | meaning |
|---|---|
| `values` (sample, time, *space, channel) | our order; with `inputs`, `times`, `x`, `y`, `z` if present |
| `coeff`, `sol` (sample, x[, y]) | steady: coefficient to solution |
| `x`, `y` (sample, x[, y]) | steady: input to output, as neuraloperator saves its sets |
| `x` (sample, x), `y` (sample, time, x) | in time, periodic: Burgers as neuraloperator saves it; `x` is left out |
| `a`, `u` (sample, x[, y]) | steady: initial state to final state, as the FNO authors save theirs |
| `u` (sample, x[, y], time), `t` | in time; the initial state `a` is left out, its time is not stored |

Beside each of them `params` (sample, parameter) with `param_names` is read, and `fields`, `units`, `input_fields`,
`input_units` and `boundary` beside `values`.
"""

import math
from dataclasses import replace
from typing import Any

from spectrakan.data.container import Container, is_text
from spectrakan.data.decoding import mismatch
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats.mapping import REMEDY, SPACE, Axis, DataMapping, MappedArray
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories

PAIRS = (("coeff", "sol", "coefficient", "solution"), ("x", "y", "input", "output"), ("a", "u", "initial", "final"))
"""Arrays of a steady pair, and the names that their fields get."""

FEWEST_CELLS = 4
"""Cells along an axis of space that a model needs; a shorter last axis holds channels."""


def read(container: Container) -> Trajectories | None:
    """A file with customary names; None where names, and the ranks that go with them, are others."""
    mapping = _canonical(container) if "values" in container else _by_names(container)
    if mapping is None:
        return None
    found = mapped.read(container, mapping)
    if "params" not in container:
        return found
    table = container.table("params", found.num_samples)
    names = container.texts("param_names", table.shape[1])
    default = tuple(f"param_{column}" for column in range(table.shape[1]))
    return replace(found, params=table, param_names=names or default)


def _by_names(container: Container) -> DataMapping | None:
    if {"u", "t"} <= container.arrays.keys() and len(container.arrays["u"].shape) in {3, 4}:
        axes: tuple[Axis, ...] = ("sample", *SPACE[: len(container.arrays["u"].shape) - 2], "time")
        return DataMapping(values=(MappedArray(array="u", axes=axes, fields=("u",)),), times="t")
    ranks = {name: container.arrays[name].shape for name in ("x", "y") if name in container}
    if len(ranks) == 2 and len(ranks["x"]) == 2 and ranks["y"][::2] == ranks["x"] and len(ranks["y"]) == 3:
        values = MappedArray(array="y", axes=("sample", "time", "x"), fields=("u",))
        known = {"visc": float(container.vector("visc")[0])} if "visc" in container else {}
        return DataMapping(values=(values,), constants=known, boundary=("periodic",))
    for given, wanted, before, after in PAIRS:
        if {given, wanted} <= container.arrays.keys() and len(container.arrays[given].shape) in {2, 3}:
            axes = ("sample", *SPACE[: len(container.arrays[given].shape) - 1])
            return DataMapping(
                values=(MappedArray(array=wanted, axes=axes, fields=(after,)),),
                inputs=(MappedArray(array=given, axes=axes, fields=(before,)),),
            )
    return None


def _canonical(container: Container) -> DataMapping:
    axes = _axes(container)
    arrays = {"values": ("fields", "units"), "inputs": ("input_fields", "input_units")}
    entries = {key: (_entry(container, key, axes, names),) for key, names in arrays.items() if key in container}
    space = [axis for axis in SPACE if axis in axes]
    located = all(axis in container for axis in space)
    boundary: Any = container.texts("boundary", len(space)) or ()
    try:
        return DataMapping(
            values=entries["values"],
            inputs=entries.get("inputs", ()),
            coordinates={axis: axis for axis in space} if located else {},
            times="times" if "times" in container else "",
            boundary=boundary,
        )
    except (ConfigError, ValueError) as problem:
        raise mismatch(container.path, "boundary", "one word for each axis of space", str(problem)) from None


def _axes(container: Container) -> tuple[Axis, ...]:
    """What the axes of `values` are; an array that may or may not have a channel axis is refused."""
    shape = container.array("values").shape
    with_channel: tuple[Axis, ...] = ("sample", "time", *SPACE[: len(shape) - 3], "channel")
    without: tuple[Axis, ...] = ("sample", "time", *SPACE[: len(shape) - 2])
    located = next((dims for dims in (3, 2, 1) if all(axis in container for axis in SPACE[:dims])), 0)
    named = container.arrays.get("fields")
    count = math.prod(named.shape) if named is not None and is_text(named.dtype) else 0

    def stated(dims: int, channels: int) -> bool:
        """Whether names of fields or coordinates say that there are so many axes of space."""
        return located in {0, dims} if count == channels else not count and located == dims

    if 4 <= len(shape) <= 6 and (len(shape) == 6 or shape[-1] < FEWEST_CELLS or stated(len(shape) - 3, shape[-1])):
        return with_channel
    if 3 <= len(shape) <= 5 and stated(len(shape) - 2, 1):
        return without
    if len(shape) not in {4, 5} or count:
        expected = "axes (sample, time, x[, y[, z]], channel)" + (f" with {count} channels" if count else "")
        raise mismatch(container.path, "values", expected, f"shape {shape}", REMEDY)
    dims = len(shape) - 3
    raise mismatch(
        container.path,
        "values",
        "axes (sample, time, *space, channel)",
        f"shape {shape}, which is {shape[-1]} fields in {dims}D or one field in {dims + 1}D without a channel axis",
        f"store an array 'fields' with the names of the fields, or the coordinates "
        f"{', '.join(SPACE[: dims + 1])} of the cells, or {REMEDY}",
    )


def _entry(container: Container, key: str, axes: tuple[Axis, ...], texts: tuple[str, str]) -> MappedArray:
    """An array with the names and units of its channels; without names they are u0, u1, ... ."""
    channels = container.array(key).shape[-1] if "channel" in axes else 1
    names, units = (container.texts(text, channels) for text in texts)
    default = ("u",) if channels == 1 else tuple(f"u{channel}" for channel in range(channels))
    return MappedArray(array=key, axes=axes, fields=names or default, units=units or ())
