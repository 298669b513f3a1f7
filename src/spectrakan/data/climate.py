"""The climate problem: surface pressure from the temperature of the same day, on a globe or a part of it.

Days are read from arrays of known names in any kind of file:

| arrays | meaning |
|---|---|
| a pair of `PAIRS`, with latitude, longitude and time | days, in one file or in several |
| `U_train`, `S_train` of 72 x 72 points | `weather_dataset.npz` of Kissas et al. (2022) |

Units follow from the size of the numbers. Integers in npz are packed values with `_scale` and `_offset` beside them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.axes import globe_grid
from spectrakan.data.container import NUMBERS, Container, read_whole, released
from spectrakan.data.decoding import decoding
from spectrakan.data.formats import open_container
from spectrakan.errors import DataFormatError
from spectrakan.fields import FieldSpec, Trajectories

SHIPPED = "climate_daily.npz"
"""730 simulated days on 32 x 64 points, part of the package; made by `tools/make_climate.py`."""

READABLE = (".nc", ".nc4", ".cdf", ".netcdf")
"""Endings of the files of a folder that are read."""

ClimatePath = str | Path | Sequence[str | Path] | None

LOCA_PAIR = ("U_train", "S_train")
LOCA_LATITUDE, LOCA_LONGITUDE = np.linspace(90.0, -87.5, 72), np.linspace(0.0, 355.0, 72)
"""Rows of `weather_dataset.npz` run from 90 to -87.5 north, columns from 0 to 355 east."""

PAIRS: tuple[tuple[str, str], ...] = (
    ("air", "pres"),
    ("tas", "ps"),
    ("t2m", "sp"),
    ("t2m", "msl"),
    ("t", "msl"),
    ("t850", "mslp"),
    ("temperature", "pressure"),
    LOCA_PAIR,
)
"""Known names of temperature and pressure: NCEP/NCAR, CMIP, ERA5, ERA-Interim, plain, Kissas et al."""

AXES: dict[str, tuple[str, ...]] = {
    "time": ("time", "valid_time", "date", "day"),
    "latitude": ("lat", "latitude"),
    "longitude": ("lon", "longitude"),
}
"""Known names of the axes of a field."""

UNITS: dict[str, tuple[tuple[float, float, str, float, float], ...]] = {
    "temperature": ((150.0, 350.0, "K", 1.0, 0.0), (-100.0, 60.0, "degC", 1.0, 273.15)),
    "pressure": ((300.0, 1100.0, "hPa", 1.0, 0.0), (3e4, 1.1e5, "Pa", 0.01, 0.0), (30.0, 110.0, "kPa", 10.0, 0.0)),
}
"""Range of the median of a field on Earth in each unit, and the factor and summand that give K or hPa."""

EPOCH = np.datetime64("2000-01-01", "D")
"""Day 0."""

_SINCE = re.compile(r"(second|minute|hour|day)s? since (\d{1,4})-(\d{1,2})-(\d{1,2})[ T]?(?:(\d{1,2}):(\d{1,2}))?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_CALENDARS = {"", "standard", "gregorian", "proleptic_gregorian"}


def load_climate(path: ClimatePath = None) -> Trajectories:
    """Days as samples of the steady problem T(x) -> p(x), in order of time.

    `inputs` `(days, 1, lat, lon, 1)` temperature in K, `values` `(days, 1, lat, lon, 1)` pressure in hPa,
    float32, latitude from south to north, cell volumes by area. `read_climate` takes the same argument and
    gives the dates as well.

    `path` is None for the days that come with the package; an npz file (this set in full, the 72 x 72
    `weather_dataset.npz`, or arrays `tas` and `ps` with `lat`, `lon`, `time`); or netCDF: a folder, a
    pattern such as `'ncep/*.19??.nc'`, a file or a list of files.

    >>> days = load_climate()
    >>> days.values.shape, days.input_fields[0].name, days.fields[0].unit
    ((730, 1, 32, 64, 1), 'temperature', 'hPa')
    """
    return read_climate(path)[0]


def read_climate(path: ClimatePath = None) -> tuple[Trajectories, npt.NDArray[Any]]:
    """The same as `load_climate`, and the dates of the days as `datetime64[D]`.

    >>> print(read_climate()[1][0])
    2000-03-01
    """
    if path is None:
        with resources.as_file(resources.files("spectrakan.data") / SHIPPED) as shipped:
            return read_climate(shipped)
    containers = []
    with ExitStack() as stack:
        for item in _expand(path):
            stack.enter_context(released(item))
            with decoding(item, kind="climate file"):
                containers.append(open_container(item))
        return read_days(containers)


def _expand(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that a folder, a pattern, a name or a list of names stands for, sorted."""
    found: list[Path] = []
    for item in map(Path, [path] if isinstance(path, str | Path) else path):
        if item.is_dir():
            files = sorted(entry for entry in item.iterdir() if entry.suffix in READABLE)
        else:
            files = [item] if item.exists() else sorted(Path(item.anchor).glob(str(item.relative_to(item.anchor))))
        if not files:
            raise DataFormatError(
                f"there is no file, folder or pattern '{item}', or it holds no file ending in {', '.join(READABLE)}"
            )
        found += [file.absolute() for file in files]
    if not found:
        raise DataFormatError(f"expected climate files, got {path!r}, which names none")
    return found


Part = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]
"""One field of a file, `(time, lat, lon)` in standard unit and orientation, with its days and its points."""


def read(container: Container) -> Trajectories | None:
    """Days as samples of the steady problem; None unless an npz file has the names of a known pair and its axes."""
    pair = next((pair for pair in PAIRS if container.arrays.keys() >= set(pair)), None)
    if container.kind != "npz" or pair is None:
        return None
    located = {"lat", "lon"} <= container.arrays.keys()
    known = 72 in container.arrays[pair[0]].shape if pair is LOCA_PAIR else located
    return read_days([container])[0] if known else None


def read_days(containers: Sequence[Container]) -> tuple[Trajectories, npt.NDArray[Any]]:
    """The days that have both fields, from files that hold one or both of a known pair, and their dates.

    Temperature (K) is the input and pressure (hPa) the output of a steady problem, float32, latitude from south to
    north; a day is a sample, in order of time. Dates are `datetime64[D]`; simulated ones are of the model's calendar.

    NCEP/NCAR: `air.sig995.1990.nc` with `air` (K) and `pres.sfc.1990.nc` with `pres` (Pa), a year each. Several
    times on one day are averaged; days that have one field only are left out.
    """
    source = f"'{containers[0].path}'" + (f" and {len(containers) - 1} more" if len(containers) > 1 else "")
    present = {name for found in containers for name in found.arrays if found.dims.get(name) != (name,)}
    pair = next((pair for pair in PAIRS if present.issuperset(pair)), None)
    if pair is None:
        raise DataFormatError(
            f"{source} should hold temperature and pressure as {'; '.join(' and '.join(pair) for pair in PAIRS)}; it "
            f"holds {', '.join(sorted(present)) or 'nothing'}. Give the files of both fields; a mapping reads others"
        )
    fields = [
        [_read_field(found, stored, name) for found in containers if stored in found]
        for name, stored in zip(("temperature", "pressure"), pair, strict=True)
    ]
    points = fields[0][0][2]
    _require_same_points(points, [other for parts in fields for _, _, other in parts], source)
    (temperature, warm), (pressure, pressed) = (_daily_means(parts) for parts in fields)
    days, left, right = np.intersect1d(warm, pressed, return_indices=True)
    if not len(days):
        spans = [f"{EPOCH + day[0]} to {EPOCH + day[-1]}" for day in (warm, pressed)]
        raise DataFormatError(f"{source}: temperature covers {spans[0]} and pressure {spans[1]}; no day in common")
    made = Trajectories(
        values=pressure[right][:, None, :, :, None],
        grid=globe_grid(*points),
        times=np.zeros(1),
        fields=(FieldSpec("pressure", unit="hPa", positive=True),),
        inputs=temperature[left][:, None, :, :, None],
        input_fields=(FieldSpec("temperature", unit="K", positive=True),),
        name="climate2d",
    )
    return made, EPOCH + days.astype("timedelta64[D]")


def _read_field(container: Container, stored: str, name: str) -> Part:
    """The variable `stored` of a file as the field `name`, `(time, lat, lon)` from south to north."""
    where = f"'{container.path}': '{stored}'"
    with decoding(container.path, stored, kind="climate field"):
        values = _unpacked(container, stored)
        if stored in LOCA_PAIR:
            latitude, longitude = LOCA_LATITUDE, LOCA_LONGITUDE
            if values.ndim < 2 or values.size != len(values) * 72 * 72:
                raise DataFormatError(f"{where} must hold 72 x 72 numbers a day, got shape {values.shape}")
            day, values = np.arange(len(values)), values.reshape(-1, 72, 72)
        else:
            keys = [_axis_name(container, stored, axis) for axis in AXES]
            day, latitude, longitude = _days(container, keys[0]), *(container.vector(key) for key in keys[1:])
            if dims := container.dims.get(stored):
                extra = {dim: size for dim, size in zip(dims, values.shape, strict=True) if dim not in keys}
                if any(size != 1 for size in extra.values()):
                    raise DataFormatError(f"{where} has more axes than time and space: {extra}; select one level")
                values = values.transpose(*(dims.index(key) for key in (*keys, *extra)))
                values = values.reshape(values.shape[:3])
        shape = (len(day), len(latitude), len(longitude))
        if values.shape != shape or not shape[0] or min(shape[1:]) < 2:
            raise DataFormatError(f"{where} must be (days, lat, lon) = {shape} on 2 x 2 points, got {values.shape}")
        for axis, points, limit in ((1, latitude, 90.0), (2, longitude, 360.0)):
            if np.abs(points).max() > limit or len(np.unique(points)) < len(points):
                raise DataFormatError(f"{where} needs different degrees within ±{limit:g}, got {points[:3]} ..")
            values = np.take(values, np.argsort(points), axis)
        return _standard(name, values, where), day, (np.sort(latitude), np.sort(longitude))


def _standard(name: str, values: npt.NDArray[Any], where: str) -> npt.NDArray[np.float32]:
    """K or hPa, float32, by the unit that the median of the numbers shows; refuses missing values."""
    missing = ~np.isfinite(values)
    if missing.any():
        place = tuple(np.argwhere(missing)[0].tolist())
        raise DataFormatError(
            f"{where} has {int(missing.sum())} missing or infinite values, the first at (day, lat, lon) = {place}; "
            "drop these days"
        )
    median = float(np.median(values))
    for low, high, _, factor, summand in UNITS[name]:
        if low <= median <= high:
            return np.asarray(values * factor + summand, dtype=np.float32)
    known = ", ".join(f"{unit} ({low:g} to {high:g})" for low, high, unit, *_ in UNITS[name])
    raise DataFormatError(f"{where}: {name} has the median {median:g}, which fits none of {known}; are they swapped?")


def _daily_means(parts: Sequence[Part]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """A field of several files as one, with the mean of each day, in order of time."""
    every = np.concatenate([day for _, day, _ in parts])
    order = np.argsort(every, kind="stable")
    days, starts, counts = np.unique(every[order], return_index=True, return_counts=True)
    values = np.concatenate([numbers for numbers, _, _ in parts])[order]
    if len(days) < len(values):
        sums = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
        values = (sums / counts[:, None, None]).astype(np.float32)
    return values, days


def _require_same_points(
    points: Sequence[npt.NDArray[np.float64]], others: Sequence[Sequence[npt.NDArray[np.float64]]], source: str
) -> None:
    for other in others:
        for name, left, right in zip(("latitudes", "longitudes"), points, other, strict=True):
            if left.shape != right.shape or not np.allclose(left, right, atol=1e-4):
                found = f"{len(left)} from {left[0]:g} and {len(right)} from {right[0]:g}"
                raise DataFormatError(f"{source} have different {name}: {found}; interpolate them to one grid first")


def _unpacked(container: Container, stored: str) -> npt.NDArray[Any]:
    """The numbers of a field; 16-bit integers in npz are packed, value = offset + scale * integer, as in netCDF."""
    values = read_whole(container.array(stored))
    if values.dtype.kind != "i" or container.kind != "npz":
        return values
    keys = (f"{stored}_scale", f"{stored}_offset")
    if values.dtype != np.int16 or any(key not in container or container.arrays[key].shape != () for key in keys):
        raise DataFormatError(
            f"'{container.path}': '{stored}' is stored as integers, so it must be int16 with the numbers "
            f"'{keys[0]}' and '{keys[1]}' beside it; write it again, or store it as floating point"
        )
    scale, offset = (float(container.vector(key)[0]) for key in keys)
    return np.asarray(values * scale + offset, dtype=np.float32)


def _axis_name(container: Container, stored: str, axis: str) -> str:
    dims = container.dims.get(stored)
    for name in AXES[axis]:
        if name in container and (dims is None or name in dims):
            return name
    has = f"axes {', '.join(dims) or 'none'}" if dims is not None else container.describe()
    raise DataFormatError(
        f"'{container.path}': '{stored}' needs an array of {axis} named {' or '.join(AXES[axis])}, found {has}"
    )


def _days(container: Container, key: str) -> npt.NDArray[np.int64]:
    """Whole days since 2000-01-01 of a time axis: by its units, else from dates, texts of dates or day numbers."""
    stated = str(container.attribute("units", of=key) or "")
    calendar = str(container.attribute("calendar", of=key) or "").lower()
    match = _SINCE.match(stated.lower())
    if match is not None and calendar in _CALENDARS:
        year, month, day, hour, minute = (int(part or 0) for part in match.groups()[1:])
        first = np.datetime64(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}", "s")
        seconds = np.rint(container.vector(key) * _SECONDS[match[1]]).astype(np.int64)
        return np.asarray((first + seconds - EPOCH.astype("datetime64[s]")).astype(np.int64) // 86400)
    times = np.atleast_1d(read_whole(container.arrays[key]))
    if not stated and times.ndim == 1 and times.dtype.kind in NUMBERS + "MU":
        numbers = times if times.dtype.kind in "iu" else times.astype("datetime64[D]") - EPOCH
        return np.asarray(numbers.astype(np.int64))
    raise DataFormatError(
        f"'{container.path}': '{key}': expected dates of the standard calendar, 'hours since 1800-01-01' "
        f"or the like, or whole days since {EPOCH}, got {times.dtype} {times.shape} {stated!r} {calendar!r}"
    )
