"""The climate problem: surface pressure from the temperature of the same day, on a globe or a part of it.

Days are read from a file of any kind that holds arrays of known names, in order of time:

| arrays | meaning |
|---|---|
| a pair of `PAIRS` (time, latitude, longitude) with its axes | days |
| `U_train`, `S_train` of 72 x 72 points | `weather_dataset.npz` of Kissas et al. (2022) |

Units follow from the size of the numbers. Integers in npz are packed values with `_scale` and `_offset` beside them.
"""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spectrakan.data.axes import globe_grid
from spectrakan.data.container import Container, read_whole, released
from spectrakan.data.decoding import decoding, mismatch
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats import native, open_container
from spectrakan.data.formats.mapping import Axis, DataMapping, MappedArray
from spectrakan.errors import DataFormatError
from spectrakan.fields import Array, Source, Trajectories

SHIPPED = "climate_daily.npz"
"""730 simulated days on 32 x 64 points, part of the package; made by `tools/make_climate.py`."""

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

AXES: dict[Axis, tuple[str, ...]] = {
    "sample": ("time", "valid_time", "date", "day"),
    "x": ("lat", "latitude"),
    "y": ("lon", "longitude"),
}
"""Known names of time, latitude and longitude, which are samples and axes of space here."""

UNITS: dict[str, tuple[tuple[float, float, str, float, float], ...]] = {
    "temperature": ((150.0, 350.0, "K", 1.0, 0.0), (-100.0, 60.0, "degC", 1.0, 273.15)),
    "pressure": ((300.0, 1100.0, "hPa", 1.0, 0.0), (3e4, 1.1e5, "Pa", 0.01, 0.0), (30.0, 110.0, "kPa", 10.0, 0.0)),
}
"""Range of the median of a field on Earth in each unit, and the factor and summand that give K or hPa."""


def load_climate(path: Path | str | None = None) -> Trajectories:
    """Days as samples of the steady problem T(x) -> p(x), in order of time.

    `inputs` `(days, 1, lat, lon, 1)` temperature in K, `values` `(days, 1, lat, lon, 1)` pressure in hPa,
    float32, latitude from south to north, cell volumes by area. `path` is None for the days that come with the
    package, else a file with arrays of known names (npz or netCDF, say), or a set that `write_dataset` wrote.

    >>> days = load_climate()
    >>> days.values.shape, days.input_fields[0].name, days.fields[0].unit
    ((730, 1, 32, 64, 1), 'temperature', 'hPa')
    """
    if path is None:
        with resources.as_file(resources.files("spectrakan.data") / SHIPPED) as shipped:
            return load_climate(shipped)
    path = Path(path).absolute()
    with released(path), decoding(path, kind="climate file"):
        container = open_container(path)
        return native.read(container) or read_days(container)


def read(container: Container) -> Trajectories | None:
    """The days of an npz file with a known pair and its axes; None for others, whose fields may evolve."""
    pair = _pair(container)
    if container.kind != "npz" or pair is None:
        return None
    located = {"lat", "lon"} <= container.arrays.keys()
    known = 72 in container.arrays[pair[0]].shape if pair is LOCA_PAIR else located
    return read_days(container) if known else None


def read_days(container: Container) -> Trajectories:
    """The days of a file that holds a known pair: temperature (K) is the input, pressure (hPa) the output."""
    pair = _pair(container)
    if pair is None:
        raise DataFormatError(
            f"'{container.path}' should hold temperature and pressure as "
            f"{'; '.join(' and '.join(pair) for pair in PAIRS)}; it holds {container.describe()}. "
            "Put both fields into one file; a mapping reads others"
        )
    container = replace(container, arrays={**container.arrays, **_unpacked(container, pair)})
    keys = {axis: _axis_name(container, pair[0], axis) for axis in AXES}
    meaning = {key: axis for axis, key in keys.items()}

    def entry(stored: str, name: str, unit: str) -> MappedArray:
        dims = container.dims.get(stored, tuple(meaning))
        axes = tuple(meaning.get(dim, "drop") for dim in dims)
        return MappedArray(array=stored, axes=axes, fields=(name,), units=(unit,), positive=(name,))

    mapping = DataMapping(
        inputs=(entry(pair[0], "temperature", "K"),),
        values=(entry(pair[1], "pressure", "hPa"),),
        coordinates={"x": keys["x"], "y": keys["y"]},
        name="climate2d",
    )
    found = mapped.read(container, mapping)
    times = read_whole(container.arrays[keys["sample"]]).reshape(-1)
    if len(times) != len(found) or (times[1:] < times[:-1]).any():
        raise mismatch(
            container.path, keys["sample"], f"{len(found)} times in order", f"{len(times)}: {times[:3]} .."
        )
    return replace(
        found,
        values=_standard(container.path, "pressure", found.values),
        inputs=None if found.inputs is None else _standard(container.path, "temperature", found.inputs),
        grid=globe_grid(*(axis.numpy() for axis in found.grid.coordinates)),
    )


def _pair(container: Container) -> tuple[str, str] | None:
    return next((pair for pair in PAIRS if container.arrays.keys() >= set(pair)), None)


def _standard(path: Path, name: str, stored: Array) -> npt.NDArray[np.float32]:
    """K or hPa, float32, by the unit that the median of the numbers shows; refuses missing values."""
    values = np.asarray(stored)
    missing = ~np.isfinite(values)
    if missing.any():
        day, _, *place, _ = np.argwhere(missing)[0].tolist()
        raise DataFormatError(
            f"'{path}': {name} has {int(missing.sum())} missing or infinite values, the first at (day, lat, lon) = "
            f"{(day, *place)}; drop these days"
        )
    median = float(np.median(values))
    for low, high, _, factor, summand in UNITS[name]:
        if low <= median <= high:
            return np.asarray(values * factor + summand, dtype=np.float32)
    known = ", ".join(f"{unit} ({low:g} to {high:g})" for low, high, unit, *_ in UNITS[name])
    raise DataFormatError(
        f"'{path}': {name} has the median {median:g}, which fits none of {known}; are they swapped?"
    )


def _unpacked(container: Container, pair: tuple[str, str]) -> dict[str, Source]:
    """The fields of a pair as numbers, and the axes of the 72 x 72 file, which has none.

    16-bit integers in npz are packed, value = offset + scale * integer, as in netCDF.
    """
    arrays: dict[str, Source] = {}
    for stored in pair:
        source = container.array(stored)
        if container.kind == "npz" and source.dtype.kind == "i":
            keys = (f"{stored}_scale", f"{stored}_offset")
            if source.dtype != np.int16 or any(container.arrays.get(key, source).shape != () for key in keys):
                expected = f"int16 with the numbers '{keys[0]}' and '{keys[1]}' beside it"
                raise mismatch(container.path, stored, expected, f"{source.dtype}; or store it as floating point")
            scale, offset = (float(container.vector(key)[0]) for key in keys)
            arrays[stored] = np.asarray(read_whole(source) * scale + offset, dtype=np.float32)
        if pair is LOCA_PAIR:
            values = read_whole(source)
            if values.ndim < 2 or values.size != len(values) * 72 * 72:
                raise mismatch(container.path, stored, "72 x 72 numbers a day", f"shape {values.shape}")
            axes = {"time": np.arange(len(values)), "lat": LOCA_LATITUDE, "lon": LOCA_LONGITUDE}
            arrays |= {stored: values.reshape(-1, 72, 72), **axes}
    return arrays


def _axis_name(container: Container, stored: str, axis: Axis) -> str:
    dims = container.dims.get(stored)
    for name in AXES[axis]:
        if name in container and (dims is None or name in dims):
            return name
    has = f"axes {', '.join(dims) or 'none'}" if dims is not None else container.describe()
    raise DataFormatError(
        f"'{container.path}': '{stored}' needs its axis, an array named {' or '.join(AXES[axis])}, found {has}"
    )
