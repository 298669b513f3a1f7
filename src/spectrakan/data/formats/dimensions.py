"""Files whose arrays name their axes (netCDF): fields, space and time are found by those names.

All real-valued variables with the largest number of axes are the fields, in the order of the file; they must
have the same axes. An axis is samples, time or channels if its name is in the lists below, else space.
Coordinates are the variables named like their axis. Times in units `... since ...` become days since the
first frame. Other variables with the axis of samples alone are parameters.
"""

from collections.abc import Sequence
from dataclasses import replace

from spectrakan.data.axes import closes_circle, increasing
from spectrakan.data.container import NUMBERS, Container
from spectrakan.data.decoding import mismatch
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats.mapping import SPACE, Axis, DataMapping, MappedArray
from spectrakan.fields import Boundary, Trajectories

SAMPLES = {"sample", "samples", "ensemble", "member", "realization", "number", "batch", "trajectory"}
TIMES = {"time", "t", "times", "valid_time"}
CHANNELS = {"channel", "channels", "field", "component"}
LATITUDES = {"lat", "latitude", "lats"}
LONGITUDES = {"lon", "longitude", "lons"}
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
    # Stored order, with latitude before longitude.
    space = sorted((axis for axis in dims if _role(axis) == "drop"), key=lambda axis: axis.lower() in LONGITUDES)
    if not 1 <= len(space) <= 3:
        raise mismatch(container.path, names[0], "1 to 3 axes of space", f"axes ({', '.join(dims)})")
    meaning: dict[str, Axis] = dict(zip(space, SPACE, strict=False))
    meaning |= {name: _role(name) for name in dims if name not in space}
    located = all(name in container for name in space)
    time = next((name for name in dims if _role(name) == "time" and name in container), "")
    latitude = [meaning[name] for name in space if name.lower() in LATITUDES] if located else []
    mapping = DataMapping(
        values=tuple(_entry(container, name, meaning) for name in names),
        coordinates=dict(zip(SPACE, space, strict=False)) if located else {},
        times=time,
        params={name: name for name in _params(container, dims)},
        boundary=_boundary(container, space) if located else (),
        latitude=next((axis for axis in SPACE if axis in latitude), ""),
    )
    return mapped.read(_with_days(container, time), mapping)


def _fields(container: Container) -> list[str]:
    candidates = [
        name
        for name, dims in container.dims.items()
        if name not in dims
        and container.arrays[name].dtype.kind in NUMBERS
        and any(_role(axis) == "drop" for axis in dims)
        and not any(axis in UNREAL or axis.startswith("phony_dim") for axis in dims)
    ]
    most = max((len(container.dims[name]) for name in candidates), default=0)
    return [name for name in candidates if len(container.dims[name]) == most]


def _params(container: Container, dims: Sequence[str]) -> list[str]:
    """Variables with one number for each sample."""
    samples = [axis for axis in dims if _role(axis) == "sample"]
    return [
        name
        for name, axes in container.dims.items()
        if samples and list(axes) == samples and name not in axes and container.arrays[name].dtype.kind in NUMBERS
    ]


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


def _boundary(container: Container, space: Sequence[str]) -> tuple[Boundary, ...]:
    """Walls at the poles and a periodic longitude where the grid goes round the globe; else unknown."""
    if len(space) != 2 or space[0].lower() not in LATITUDES or space[1].lower() not in LONGITUDES:
        return ()
    longitude, _ = increasing(container.vector(space[1]))
    return ("wall", "periodic") if len(longitude) > 1 and closes_circle(longitude) else ()


def _with_days(container: Container, time: str) -> Container:
    """The container with its times in days since the first frame, where their unit says `... since ...`."""
    unit, since, _ = str(container.attribute("units", of=time) or "").partition(" since ")
    scale = DAYS.get(unit.strip().lower().removesuffix("s"))
    if not time or not since or scale is None:
        return container
    numbers = container.vector(time)
    arrays = {**container.arrays, time: (numbers - numbers[0]) * scale}
    return replace(container, arrays=arrays)
