"""The climate task: surface pressure from the temperature of the same day, on a globe or a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from spectrakan.data.climate_days import ClimateDays
from spectrakan.data.climate_netcdf import NETCDF_ENDINGS, read_climate_netcdf
from spectrakan.data.climate_npz import read_climate_npz
from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories

SHIPPED = "climate_daily.npz"
"""730 simulated days on 32 x 64 points, part of the package; `tools/make_climate.py` made them."""

TIME_ORDERED = True
"""Neighbouring days are nearly the same, so only a split by time is honest: the first part trains."""

READABLE = (*NETCDF_ENDINGS, ".zarr")
"""Endings of what is looked for in a folder."""

ClimatePath = str | Path | Sequence[str | Path] | None


def load_climate(path: ClimatePath = None, variables: tuple[str, str] | None = None) -> Trajectories:
    """Days as samples of the steady task T(x) -> p(x), in order of time.

    `inputs` `(days, 1, lat, lon, 1)` temperature in K, `values` `(days, 1, lat, lon, 1)` pressure in hPa,
    float32, latitude from south to north, cell volumes by area. `read_climate` takes the same arguments and
    keeps the day numbers as well.

    `path` is None for the days that come with the package; an npz file (this set in full, the 72 x 72
    `weather_dataset.npz`, or arrays `tas` and `ps` with `lat`, `lon`, `time`); or netCDF or Zarr: a folder, a
    pattern such as `'ncep/*.19??.nc'`, a file or a list of files. `variables` names temperature and pressure
    there, where they are not the usual ones.

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
            return read_climate_npz(shipped)
    paths = _expand(path)
    archives = [item for item in paths if item.suffix == ".npz"]
    if not archives:
        return read_climate_netcdf(paths, variables)
    if len(paths) > 1:
        raise DataFormatError(f"expected one npz file or netCDF files alone, got {len(paths)} files: {path}")
    return read_climate_npz(archives[0], variables)


def _expand(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that a folder, a pattern, a name or a list of names stands for, sorted."""
    items = [path] if isinstance(path, str | Path) else list(path)
    found = [file for item in items for file in _files_of(Path(item))]
    if not found:
        raise DataFormatError(f"expected climate files, got {path!r}, which names none")
    return found


def _files_of(item: Path) -> list[Path]:
    if item.is_dir() and item.suffix != ".zarr":
        files = sorted(entry for entry in item.iterdir() if entry.suffix in READABLE)
        if not files:
            raise DataFormatError(f"folder '{item}' holds no file ending in {', '.join(READABLE)}")
        return files
    if item.exists():
        return [item]
    matches = sorted(Path(item.anchor).glob(str(item.relative_to(item.anchor))))
    if not matches:
        raise DataFormatError(f"there is no file, folder or pattern '{item}'")
    return matches
