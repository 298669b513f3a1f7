"""The climate problem: surface pressure from the temperature of the same day, on a globe or a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from typing import Any

import numpy.typing as npt

from spectrakan.data.container import released
from spectrakan.data.decoding import decoding
from spectrakan.data.formats.climate import read_days
from spectrakan.data.load import open_container
from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories

SHIPPED = "climate_daily.npz"
"""730 simulated days on 32 x 64 points, part of the package; made by `tools/make_climate.py`."""

READABLE = (".nc", ".nc4", ".cdf", ".netcdf", ".zarr")
"""Endings of the files of a folder that are read."""

ClimatePath = str | Path | Sequence[str | Path] | None


def load_climate(path: ClimatePath = None) -> Trajectories:
    """Days as samples of the steady problem T(x) -> p(x), in order of time.

    `inputs` `(days, 1, lat, lon, 1)` temperature in K, `values` `(days, 1, lat, lon, 1)` pressure in hPa,
    float32, latitude from south to north, cell volumes by area. `read_climate` takes the same argument and
    gives the dates as well.

    `path` is None for the days that come with the package; an npz file (this set in full, the 72 x 72
    `weather_dataset.npz`, or arrays `tas` and `ps` with `lat`, `lon`, `time`); or netCDF or Zarr: a folder, a
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
        if item.is_dir() and item.suffix != ".zarr":
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
