"""Files whose arrays name their axes (netCDF): fields, space and time are found by those names.

All real-valued variables with the largest number of axes are the fields, in the order of the file; they must
have the same axes. An axis is samples, time or channels if its name is in the lists below, else space.
Coordinates are the variables named like their axis. Times in units `... since ...` become days since the
first frame. Other variables with the axis of samples alone are parameters; beside fields of one instant, variables
without that axis of time are the input fields of a steady problem.
"""

from collections.abc import Sequence
from dataclasses import replace

from spectrakan.data.container import NUMBERS, Container
from spectrakan.data.decoding import mismatch
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats.mapping import SPACE, Axis, DataMapping, MappedArray, increasing
from spectrakan.fields import Trajectories
from spectrakan.fields.grid import LATITUDES, LONGITUDES, globe_boundary

SAMPLES = {"sample", "samples", "ensemble", "member", "realization", "number", "batch", "trajectory"}
TIMES = {"time", "t", "times", "valid_time"}
CHANNELS = {"channel", "channels", "field", "component"}
UNREAL = {"bnds", "bounds", "nv"}
"""Axes of the bounds of cells, which are not axes of a field."""
DAYS = {"second": 1 / 86400, "minute": 1 / 1440, "hour": 1 / 24, "day": 1.0}


def read(container: Container) -> Trajectories | None:
    """The fields of a file that names its axes; None where no array does."""
    names = _fields(container)
    if not names:
        return None
    dims = container.dims[names[0]]
    for name in names:
        if set(container.dims[name]) != set(dims):
            found = f"({', '.join(container.dims[name])})"
            remedy = "select the arrays by a mapping"
            raise mismatch(container.path, name, f"the axes ({', '.join(dims)}) of '{names[0]}'", found, remedy)
    sizes = dict(zip(dims, container.arrays[names[0]].shape, strict=True))
    # Stored order, with latitude before longitude; axes of one cell (a level) are dropped.
    space = [axis for axis in dims if _role(axis) == "drop" and sizes[axis] > 1]
    space.sort(key=lambda axis: axis.lower() in LONGITUDES)
    if not 1 <= len(space) <= 3:
        raise mismatch(container.path, names[0], "1 to 3 axes of space", f"axes ({', '.join(dims)})")
    meaning: dict[str, Axis] = dict(zip(space, SPACE, strict=False))
    meaning |= {name: _role(name) for name in dims if name not in space}
    located = all(name in container for name in space)
    instant = next((name for name in dims if _role(name) == "time"), "")
    time = instant if instant in container else ""
    before = [name for name in _numeric(container) if set(container.dims[name]) == set(dims) - {instant}]
    latitude = [meaning[name] for name in space if name.lower() in LATITUDES] if located else []
    mapping = DataMapping(
        values=tuple(_entry(container, name, meaning) for name in names),
        inputs=tuple(_entry(container, name, meaning) for name in before if sizes.get(instant) == 1),
        coordinates=dict(zip(SPACE, space, strict=False)) if located else {},
        times=time,
        params={name: name for name in _params(container, dims)},
        boundary=globe_boundary(space, increasing(container.vector(space[-1]))[0]) if located else (),
        latitude=next((axis for axis in SPACE if axis in latitude), ""),
    )
    return mapped.read(_with_days(container, time), mapping)


def _fields(container: Container) -> list[str]:
    candidates = [
        name
        for name in _numeric(container)
        if any(_role(axis) == "drop" for axis in container.dims[name])
        and not any(axis in UNREAL or axis.startswith("phony_dim") for axis in container.dims[name])
    ]
    most = max((len(container.dims[name]) for name in candidates), default=0)
    return [name for name in candidates if len(container.dims[name]) == most]


def _params(container: Container, dims: Sequence[str]) -> list[str]:
    """Variables with one number for each sample."""
    samples = [axis for axis in dims if _role(axis) == "sample"]
    return [name for name in _numeric(container) if samples and list(container.dims[name]) == samples]


def _numeric(container: Container) -> list[str]:
    """Variables of numbers that are no coordinates."""
    dims, arrays = container.dims, container.arrays
    return [name for name in dims if name not in dims[name] and arrays[name].dtype.kind in NUMBERS]


def _role(axis: str) -> Axis:
    """What an axis is by its name; `drop` means space until the axes are numbered."""
    roles: dict[Axis, set[str]] = {"sample": SAMPLES, "time": TIMES, "channel": CHANNELS}
    return next((role for role, names in roles.items() if axis.lower() in names), "drop")


def _entry(container: Container, name: str, meaning: dict[str, Axis]) -> MappedArray:
    axes = tuple(meaning[axis] for axis in container.dims[name])
    sizes = dict(zip(axes, container.array(name).shape, strict=True))
    channels = sizes.get("channel", 1)
    fields = (name,) if "channel" not in axes else tuple(f"{name}{channel}" for channel in range(channels))
    unit = str(container.attribute("units", of=name) or "")
    return MappedArray(array=name, axes=axes, fields=fields, units=(unit,) * len(fields))


def _with_days(container: Container, time: str) -> Container:
    """The container with its times in days since the first frame, where their unit says `... since ...`."""
    unit, since, _ = str(container.attribute("units", of=time) or "").partition(" since ")
    scale = DAYS.get(unit.strip().lower().removesuffix("s"))
    if not time or not since or scale is None:
        return container
    numbers = container.vector(time)
    arrays = {**container.arrays, time: (numbers - numbers[0]) * scale}
    return replace(container, arrays=arrays)
