"""Daily temperature and pressure from NumPy archives of known layouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.climate_days import ClimateDays, day_numbers, orient, to_standard_unit
from spectrakan.data.packing import Packed
from spectrakan.errors import DataFormatError

Arrays = Mapping[str, npt.NDArray[Any]]

PAIRS: tuple[tuple[str, str], ...] = (("temperature", "pressure"), ("tas", "ps"), ("t850", "mslp"))
"""Names of temperature and pressure that are known without being told."""

LOCA_PAIR = ("U_train", "S_train")
LOCA_SIZE = 72
LOCA_LATITUDE = np.linspace(90.0, -87.5, LOCA_SIZE)
LOCA_LONGITUDE = np.linspace(0.0, 355.0, LOCA_SIZE)
"""`weather_dataset.npz` of Kissas et al. (2022): rows from 90 to -87.5 north, columns from 0 to 355 east."""


def read_climate_npz(path: Path, variables: tuple[str, str] | None = None) -> ClimateDays:
    """All days of an archive with `lat`, `lon` and `day` or `time`, or of the 72 x 72 `weather_dataset.npz`.

    `variables` names the arrays of temperature and pressure where they are not called as in `PAIRS`.
    Integers are packed values with `_scale` and `_offset` beside them.
    """
    arrays, present = _read_arrays(path, variables)
    if variables is None and all(name in arrays for name in LOCA_PAIR):
        return _read_loca(arrays, path)
    pair = variables or next((pair for pair in PAIRS if all(name in arrays for name in pair)), None)
    if pair is None or any(name not in arrays for name in pair):
        wanted = " and ".join(variables) if variables else "; ".join(" and ".join(pair) for pair in PAIRS)
        raise DataFormatError(
            f"'{path}' should hold temperature and pressure as {wanted}; it holds "
            f"{', '.join(sorted(present)) or 'nothing'}"
        )
    return _read_gridded(arrays, pair, path)


def _read_arrays(path: Path, variables: tuple[str, str] | None) -> tuple[Arrays, list[str]]:
    """The arrays that have a meaning here, and the names of all."""
    stems = {*(variables or ()), *LOCA_PAIR, *(name for pair in PAIRS for name in pair)}
    known = {stem + end for stem in stems for end in ("", "_scale", "_offset")}
    known |= {"lat", "lon", "day", "time"}
    try:
        # NumPy leaves a file that it opens itself open when it turns out to be damaged.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if name in known}, list(file.files)
    except Exception as problem:
        # A damaged archive may fail in zip, in deflate, in the header's text or for want of memory.
        raise DataFormatError(f"'{path}' is not a readable npz file: {problem}") from None


def _read_gridded(arrays: Arrays, pair: tuple[str, str], path: Path) -> ClimateDays:
    latitude, longitude = (_axis(arrays, name, path) for name in ("lat", "lon"))
    clock = next((name for name in ("day", "time") if name in arrays), None)
    if clock is None:
        raise DataFormatError(f"'{path}' needs an array 'day' or 'time' with one entry for each field")
    days = day_numbers(np.atleast_1d(arrays[clock]), f"'{path}'")
    fields = []
    for name, stored in zip(("temperature", "pressure"), pair, strict=True):
        values = _unpacked(arrays, stored)
        if values.shape != (len(days), len(latitude), len(longitude)):
            raise DataFormatError(
                f"'{path}': '{stored}' must be (days, lat, lon) = "
                f"{(len(days), len(latitude), len(longitude))}, got {values.shape}"
            )
        standard = to_standard_unit(name, values, "", f"'{path}'")
        fields.append(orient(standard, latitude, longitude))
    return ClimateDays(fields[0], fields[1], np.sort(latitude), np.sort(longitude), days, f"'{path}'")


def _read_loca(arrays: Arrays, path: Path) -> ClimateDays:
    """Fields `(days, 72 * 72)` or `(days, 72, 72)`, rows from the north pole; days are counted from 0."""
    fields = []
    for name, stored in zip(("temperature", "pressure"), LOCA_PAIR, strict=True):
        values = arrays[stored]
        points = LOCA_SIZE * LOCA_SIZE
        if values.ndim < 2 or values.size != len(values) * points or values.dtype.kind != "f":
            raise DataFormatError(
                f"'{path}': '{stored}' must hold {LOCA_SIZE} x {LOCA_SIZE} numbers a day, got "
                f"{values.dtype} {values.shape}"
            )
        square = values.reshape(-1, LOCA_SIZE, LOCA_SIZE)
        standard = to_standard_unit(name, square, "", f"'{path}'")
        fields.append(orient(standard, LOCA_LATITUDE, LOCA_LONGITUDE))
    days = np.arange(len(fields[0]), dtype=np.int64)
    return ClimateDays(fields[0], fields[1], np.sort(LOCA_LATITUDE), LOCA_LONGITUDE, days, f"'{path}'")


def _unpacked(arrays: Arrays, name: str) -> npt.NDArray[Any]:
    values = arrays[name]
    if values.dtype.kind == "i":
        return Packed.from_arrays(name, arrays).unpack()
    if values.dtype.kind != "f":
        raise DataFormatError(f"'{name}' must hold numbers, got {values.dtype}")
    return values


def _axis(arrays: Arrays, name: str, path: Path) -> npt.NDArray[np.float64]:
    if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype.kind not in "fi":
        found = f"{arrays[name].dtype} {arrays[name].shape}" if name in arrays else "none"
        raise DataFormatError(f"'{path}' needs an array '{name}' of degrees, one for each row, got {found}")
    return arrays[name].astype(np.float64)
