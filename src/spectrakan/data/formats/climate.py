"""Daily temperature and pressure on a latitude-longitude grid, from arrays of known names.

| arrays | meaning |
|---|---|
| a pair of `PAIRS`, with latitude, longitude and time | days of any kind of file |
| `U_train`, `S_train` of 72 x 72 points | `weather_dataset.npz` of Kissas et al. (2022) |

Units are read from the file, else they follow from the size of the numbers. Integers in npz are packed values
with `_scale` and `_offset` beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.climate_days import EPOCH, ClimateDays, day_numbers, orient, to_standard_unit
from spectrakan.data.container import NUMBERS, Container
from spectrakan.data.source import read_whole
from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories

PAIRS: tuple[tuple[str, str], ...] = (
    ("air", "pres"),
    ("tas", "ps"),
    ("t2m", "sp"),
    ("t2m", "msl"),
    ("t", "msl"),
    ("t850", "mslp"),
    ("temperature", "pressure"),
)
"""Known names of temperature and pressure: NCEP/NCAR, CMIP, ERA5, ERA-Interim, plain."""

AXES: dict[str, tuple[str, ...]] = {
    "time": ("time", "valid_time", "date", "day"),
    "latitude": ("lat", "latitude"),
    "longitude": ("lon", "longitude"),
}
"""Known names of the axes of a field."""

LOCA_PAIR = ("U_train", "S_train")
LOCA_SIZE = 72
LOCA_LATITUDE = np.linspace(90.0, -87.5, LOCA_SIZE)
LOCA_LONGITUDE = np.linspace(0.0, 355.0, LOCA_SIZE)
"""Rows of `weather_dataset.npz` run from 90 to -87.5 north, columns from 0 to 355 east."""

_SINCE = re.compile(r"(second|minute|hour|day)s? since (\d{1,4}-\d{1,2}-\d{1,2})[ T]?(\d{1,2}:\d{1,2})?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_CALENDARS = {"", "standard", "gregorian", "proleptic_gregorian"}


@dataclass(frozen=True, eq=False)
class ClimateField:
    """One variable of one file, in standard unit and orientation; several times may fall on one day."""

    values: npt.NDArray[np.float32]
    day: npt.NDArray[np.int64]
    latitude: npt.NDArray[np.float64]
    longitude: npt.NDArray[np.float64]
    path: Path


def recognises(container: Container) -> bool:
    """Whether an npz file has the names of a known pair and its axes."""
    if container.kind != "npz":
        return False
    if known_pair(container.arrays) is not None and "lat" in container and "lon" in container:
        return True
    pair = all(name in container for name in LOCA_PAIR)
    return pair and LOCA_SIZE in container.arrays[LOCA_PAIR[0]].shape


def read(container: Container) -> Trajectories:
    """Days as samples of the steady problem, temperature to pressure."""
    return read_archive(container).trajectories()


def known_pair(present: Iterable[str]) -> tuple[str, str] | None:
    """The first known pair of names that is complete."""
    names = set(present)
    return next((pair for pair in PAIRS if names.issuperset(pair)), None)


def read_archive(container: Container, variables: tuple[str, str] | None = None) -> ClimateDays:
    """All days of one file that holds both fields; `variables` names them where `PAIRS` does not."""
    loca = variables is None and all(name in container for name in LOCA_PAIR)
    pair = LOCA_PAIR if loca else variables or known_pair(container.arrays)
    if pair is None or any(name not in container for name in pair):
        raise no_pair(f"'{container.path}'", variables, container.arrays)
    read_field = _read_loca if loca else read_field_of
    fields = [read_field(container, *names) for names in zip(pair, ("temperature", "pressure"), strict=True)]
    first = fields[0]
    return ClimateDays(
        first.values, fields[1].values, first.latitude, first.longitude, first.day, f"'{container.path}'"
    )


def read_field_of(container: Container, stored: str, name: str) -> ClimateField:
    """The variable `stored` of a file as the field `name`, `(time, lat, lon)` from south to north."""
    where = f"'{container.path}': '{stored}'"
    keys = {axis: _axis_name(container, stored, axis) for axis in AXES}
    latitude, longitude = (_degrees(container, keys[axis]) for axis in ("latitude", "longitude"))
    day = _days(container, keys["time"])
    values = _values(container, stored)
    dims = container.dims.get(stored)
    if dims is not None:
        extra = {dim: size for dim, size in zip(dims, values.shape, strict=True) if dim not in keys.values()}
        if any(size != 1 for size in extra.values()):
            raise DataFormatError(f"{where} has more axes than time and space: {extra}; select one level")
        values = values.transpose(*(dims.index(key) for key in keys.values()), *(dims.index(dim) for dim in extra))
        values = values.reshape(values.shape[:3])
    if values.shape != (len(day), len(latitude), len(longitude)):
        expected = f"(days, lat, lon) = {(len(day), len(latitude), len(longitude))}"
        raise DataFormatError(f"{where} must be {expected}, got {values.shape}")
    standard = to_standard_unit(name, values, str(container.attribute("units", of=stored) or ""), where)
    turned = orient(standard, latitude, longitude)
    return ClimateField(turned, day, np.sort(latitude), np.sort(longitude), container.path)


def no_pair(source: str, variables: tuple[str, str] | None, present: Iterable[str]) -> DataFormatError:
    """The error for files without both fields."""
    wanted = " and ".join(variables) if variables else "; ".join(" and ".join(pair) for pair in PAIRS)
    return DataFormatError(
        f"{source} should hold temperature and pressure as {wanted}; it holds "
        f"{', '.join(sorted(present)) or 'nothing'}. Give the files of both fields, and the names of the two "
        "arrays as `variables` if they are others"
    )


def _read_loca(container: Container, stored: str, name: str) -> ClimateField:
    """Fields `(days, 72 * 72)` or `(days, 72, 72)`, rows from the north pole; days are counted from 0."""
    values = read_whole(container.array(stored))
    points = LOCA_SIZE * LOCA_SIZE
    if values.ndim < 2 or values.size != len(values) * points or values.dtype.kind != "f":
        raise DataFormatError(
            f"'{container.path}': '{stored}' must hold {LOCA_SIZE} x {LOCA_SIZE} numbers a day, got "
            f"{values.dtype} {values.shape}"
        )
    standard = to_standard_unit(name, values.reshape(-1, LOCA_SIZE, LOCA_SIZE), "", f"'{container.path}'")
    turned = orient(standard, LOCA_LATITUDE, LOCA_LONGITUDE)
    day = np.arange(len(turned), dtype=np.int64)
    return ClimateField(turned, day, np.sort(LOCA_LATITUDE), LOCA_LONGITUDE, container.path)


def _values(container: Container, stored: str) -> npt.NDArray[Any]:
    """The numbers of a field; 16-bit integers in npz are packed, value = offset + scale * integer, as in netCDF."""
    values = read_whole(container.array(stored))
    if values.dtype.kind != "i" or container.kind != "npz":
        return values
    keys = (f"{stored}_scale", f"{stored}_offset")
    where = f"'{container.path}': '{stored}'"
    if any(key not in container or container.arrays[key].shape != () for key in keys):
        raise DataFormatError(
            f"{where} is stored as integers, so the numbers '{keys[0]}' and '{keys[1]}' must be stored beside it; "
            "write it again, or store it as floating point"
        )
    scale, offset = (float(container.vector(key)[0]) for key in keys)
    if values.dtype != np.int16 or scale <= 0:
        raise DataFormatError(f"{where} must be int16 with a positive scale, got {values.dtype} and {scale}")
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


def _degrees(container: Container, key: str) -> npt.NDArray[np.float64]:
    source = container.arrays[key]
    if len(source.shape) != 1 or source.dtype.kind not in NUMBERS:
        found = f"{source.dtype} {source.shape}"
        raise DataFormatError(f"'{container.path}' needs an array '{key}' of degrees, one for each row, got {found}")
    return container.vector(key)


def _days(container: Container, key: str) -> npt.NDArray[np.int64]:
    """Whole days since 2000-01-01 of the entries of a time axis, by its units where they are stated."""
    where = f"'{container.path}': '{key}'"
    stated = str(container.attribute("units", of=key) or "")
    if not stated:
        return day_numbers(np.atleast_1d(read_whole(container.arrays[key])), where)
    calendar = str(container.attribute("calendar", of=key) or "").lower()
    match = _SINCE.match(stated.lower())
    if match is None or calendar not in _CALENDARS:
        raise DataFormatError(
            f"{where}: expected times of the standard calendar such as 'hours since 1800-01-01', got {stated!r} "
            f"of the calendar {calendar or 'standard'!r}"
        )
    year, month, day = (int(part) for part in match[2].split("-"))
    hour, minute = (int(part) for part in (match[3] or "0:0").split(":"))
    first = (np.datetime64(f"{year:04d}-{month:02d}-{day:02d}") - EPOCH).astype(np.int64) * 86400
    seconds = np.rint(container.vector(key) * _SECONDS[match[1]]).astype(np.int64)
    return np.asarray((first + hour * 3600 + minute * 60 + seconds) // 86400)
