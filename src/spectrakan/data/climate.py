"""The climate problem: surface pressure from the temperature of the same day, on a globe or a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spectrakan.data.climate_days import EPOCH, ClimateDays
from spectrakan.data.decoding import decoding
from spectrakan.data.formats.climate import ClimateField, known_pair, no_pair, read_archive, read_field_of
from spectrakan.data.load import open_container
from spectrakan.data.source import released
from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories

SHIPPED = "climate_daily.npz"
"""730 simulated days on 32 x 64 points, part of the package; made by `tools/make_climate.py`."""

READABLE = (".nc", ".nc4", ".cdf", ".netcdf", ".zarr")
"""Endings of the files of a folder that are read."""

ClimatePath = str | Path | Sequence[str | Path] | None


def load_climate(path: ClimatePath = None, variables: tuple[str, str] | None = None) -> Trajectories:
    """Days as samples of the steady problem T(x) -> p(x), in order of time.

    `inputs` `(days, 1, lat, lon, 1)` temperature in K, `values` `(days, 1, lat, lon, 1)` pressure in hPa,
    float32, latitude from south to north, cell volumes by area. `read_climate` takes the same arguments and
    keeps the day numbers as well.

    `path` is None for the days that come with the package; an npz file (this set in full, the 72 x 72
    `weather_dataset.npz`, or arrays `tas` and `ps` with `lat`, `lon`, `time`); or netCDF or Zarr: a folder, a
    pattern such as `'ncep/*.19??.nc'`, a file or a list of files. `variables` names temperature and pressure
    where they have other names than these.

    >>> days = load_climate()
    >>> days.values.shape, days.input_fields[0].name, days.fields[0].unit
    ((730, 1, 32, 64, 1), 'temperature', 'hPa')
    """
    return read_climate(path, variables).trajectories()


def read_climate(path: ClimatePath = None, variables: tuple[str, str] | None = None) -> ClimateDays:
    """The same as `load_climate`, as fields of known days.

    >>> print(read_climate().dates[0])
    2000-03-01
    """
    if path is None:
        with resources.as_file(resources.files("spectrakan.data") / SHIPPED) as shipped:
            return read_climate(shipped)
    paths = _expand(path)
    archives = [item for item in paths if item.suffix == ".npz"]
    if not archives:
        return _join_files(paths, variables)
    if len(paths) > 1:
        raise DataFormatError(f"expected one npz file or netCDF files alone, got {len(paths)} files: {path}")
    with decoding(paths[0], kind="climate archive"):
        return read_archive(open_container(paths[0]), variables)


def _join_files(paths: Sequence[Path], variables: tuple[str, str] | None) -> ClimateDays:
    """The days that have both fields, from any number of files that hold one or both of two variables.

    NCEP/NCAR: `air.sig995.1990.nc` with `air` (K) and `pres.sfc.1990.nc` with `pres` (Pa), a year each. Several
    times on one day are averaged; days that have one field only are left out.
    """
    source = f"'{paths[0]}'" if len(paths) == 1 else f"'{paths[0]}' and {len(paths) - 1} more"
    present = {path: _names_in(path) for path in paths}
    names = set().union(*present.values())
    pair = variables or known_pair(names)
    fields = []
    for name, stored in zip(("temperature", "pressure"), pair or ("", ""), strict=True):
        holders = [path for path in paths if stored in present[path]]
        if not holders:
            raise no_pair(source, variables, names)
        fields.append(_join([_read_field(path, stored, name) for path in holders]))
    temperature, pressure = fields
    _check_same_grid(temperature, pressure)
    days, left, right = np.intersect1d(temperature.day, pressure.day, return_indices=True)
    if not len(days):
        periods = [f"{EPOCH + field.day[0]} to {EPOCH + field.day[-1]}" for field in fields]
        raise DataFormatError(
            f"{source}: temperature covers {periods[0]} and pressure {periods[1]}; they need days in common"
        )
    return ClimateDays(
        temperature=_take(temperature.values, left),
        pressure=_take(pressure.values, right),
        latitude=temperature.latitude,
        longitude=temperature.longitude,
        day=days,
        source=source,
    )


def _names_in(path: Path) -> set[str]:
    """Variables of a file that are no coordinates of their own axis."""
    with released(path), decoding(path, kind="climate file"):
        container = open_container(path)
        return {name for name in container.arrays if container.dims.get(name) != (name,)}


def _read_field(path: Path, stored: str, name: str) -> ClimateField:
    with released(path), decoding(path, stored, kind="climate field"):
        return read_field_of(open_container(path), stored, name)


def _join(parts: list[ClimateField]) -> ClimateField:
    """Fields on one grid as one, with the mean of each day, in order of time."""
    first = parts[0]
    for other in parts[1:]:
        _check_same_grid(first, other)
    every = np.concatenate([part.day for part in parts])
    order = np.argsort(every, kind="stable")
    values = _take(np.concatenate([part.values for part in parts]), order)
    days, starts, counts = np.unique(every[order], return_index=True, return_counts=True)
    if len(days) < len(values):
        sums = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
        values = (sums / counts[:, None, None]).astype(np.float32)
    return ClimateField(values, days, first.latitude, first.longitude, first.path)


def _take(values: npt.NDArray[np.float32], order: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
    """Rows in the given order, without a copy where they already have it."""
    return values if np.array_equal(order, np.arange(len(values))) else values[order]


def _check_same_grid(one: ClimateField, two: ClimateField) -> None:
    for name in ("latitude", "longitude"):
        left, right = getattr(one, name), getattr(two, name)
        if left.shape != right.shape or not np.allclose(left, right, atol=1e-4):
            raise DataFormatError(
                f"'{one.path}' and '{two.path}' have different {name}s: {len(left)} from {left[:1]} and "
                f"{len(right)} from {right[:1]}; interpolate both to one grid first"
            )


def _expand(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that a folder, a pattern, a name or a list of names stands for, sorted."""
    found: list[Path] = []
    for item in map(Path, [path] if isinstance(path, str | Path) else path):
        if item.is_dir() and item.suffix != ".zarr":
            files = sorted(entry for entry in item.iterdir() if entry.suffix in READABLE)
            if not files:
                raise DataFormatError(f"folder '{item}' holds no file ending in {', '.join(READABLE)}")
        elif item.exists():
            files = [item]
        else:
            files = sorted(Path(item.anchor).glob(str(item.relative_to(item.anchor))))
            if not files:
                raise DataFormatError(f"there is no file, folder or pattern '{item}'")
        found += [file.absolute() for file in files]
    if not found:
        raise DataFormatError(f"expected climate files, got {path!r}, which names none")
    return found
