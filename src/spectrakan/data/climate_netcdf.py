"""Daily temperature and pressure from years of netCDF (or Zarr) files, read with xarray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from spectrakan.data.climate_days import EPOCH, ClimateDays, day_numbers, orient, to_standard_unit
from spectrakan.data.hdf5_heap import find_damaged_heap
from spectrakan.errors import DataFormatError

PAIRS: tuple[tuple[str, str], ...] = (
    ("air", "pres"),
    ("tas", "ps"),
    ("t2m", "sp"),
    ("t2m", "msl"),
    ("t", "msl"),
    ("temperature", "pressure"),
)
"""Known names of temperature and pressure: NCEP/NCAR, CMIP, ERA5, ERA-Interim, plain."""

NETCDF_ENDINGS = (".nc", ".nc4", ".cdf", ".netcdf")

AXES: dict[str, tuple[str, ...]] = {
    "time": ("time", "valid_time", "date", "day"),
    "latitude": ("lat", "latitude"),
    "longitude": ("lon", "longitude"),
}
"""Known names of the axes of a field."""


@dataclass(frozen=True, eq=False)
class Block:
    """One variable of one file, in standard unit and orientation; several times may fall on one day."""

    values: npt.NDArray[np.float32]
    day: npt.NDArray[np.int64]
    latitude: npt.NDArray[np.float64]
    longitude: npt.NDArray[np.float64]
    path: Path


def read_climate_netcdf(paths: Sequence[Path], variables: tuple[str, str] | None = None) -> ClimateDays:
    """The days that have both fields, from any number of files that hold one or both of two variables.

    NCEP/NCAR: `air.sig995.1990.nc` with `air` (K) and `pres.sfc.1990.nc` with `pres` (Pa), a year each.
    Several times on one day are averaged; units are read from the files; days that have one field only are
    left out. `variables` names temperature and pressure where they are not called as in `PAIRS`.
    """
    source = _name(paths)
    present = {path: _variables_in(path) for path in paths}
    pair = variables or _known_pair(set().union(*present.values()))
    fields = []
    for name, stored in zip(("temperature", "pressure"), pair or ("", ""), strict=True):
        holders = [path for path, names in present.items() if stored in names]
        if not holders:
            raise DataFormatError(_no_pair(source, variables, set().union(*present.values())))
        fields.append(_join([_read_block(path, stored, name) for path in holders]))
    temperature, pressure = fields
    _check_same_grid(temperature, pressure)
    days, left, right = np.intersect1d(temperature.day, pressure.day, return_indices=True)
    if not len(days):
        raise DataFormatError(
            f"{source}: temperature covers {_period(temperature.day)} and pressure {_period(pressure.day)}; "
            "they need days in common"
        )
    return ClimateDays(
        temperature=_take(temperature.values, left),
        pressure=_take(pressure.values, right),
        latitude=temperature.latitude,
        longitude=temperature.longitude,
        day=days,
        source=source,
    )


def _open(path: Path) -> Any:
    try:
        import xarray
    except ImportError:
        raise DataFormatError(
            f"reading '{path}' needs xarray; install it with: pip install 'spectrakan[climate]'"
        ) from None
    try:
        if path.suffix in NETCDF_ENDINGS:
            _check_container(path)
        return xarray.open_dataset(path)
    except Exception as problem:
        # Each of xarray's backends has errors of its own, and which one is tried depends on the machine.
        raise DataFormatError(f"xarray cannot open '{path}': {problem}") from None


def _check_container(path: Path) -> None:
    """Meet damage here first: libraries below may wait on it without end, or complain of it twice."""
    if h5py.is_hdf5(path):
        if (place := find_damaged_heap(path)) is not None:
            raise ValueError(f"its heap at byte {place} is damaged")
        with h5py.File(path, "r") as file:
            file.attrs.get("_nc3_strict")
        return
    with path.open("rb") as stream:
        if stream.read(3) != b"CDF":
            raise ValueError("it is neither netCDF-3 nor HDF5")


def _variables_in(path: Path) -> set[str]:
    with _open(path) as dataset:
        return {str(name) for name in dataset.data_vars}


def _read_block(path: Path, stored: str, name: str) -> Block:
    with _open(path) as dataset:
        array = dataset[stored]
        where = f"'{path}': '{stored}'"
        axes = {axis: _find_axis(array, axis, where) for axis in AXES}
        extra = {str(size): array.sizes[size] for size in array.dims if size not in axes.values()}
        if any(size != 1 for size in extra.values()):
            raise DataFormatError(f"{where} has more axes than time and space: {extra}; select one level")
        try:
            plain = array.squeeze(list(extra)).transpose(*axes.values())
            latitude, longitude = (np.asarray(plain[axes[axis]], np.float64) for axis in list(AXES)[1:])
            day = day_numbers(np.asarray(plain[axes["time"]]), where)
            values = to_standard_unit(name, plain.values, str(array.attrs.get("units", "")), where)
        except (OSError, ValueError, TypeError, KeyError, RuntimeError, IndexError, MemoryError) as problem:
            raise DataFormatError(f"{where} cannot be read: {problem}") from None
    return Block(orient(values, latitude, longitude), day, np.sort(latitude), np.sort(longitude), path)


def _find_axis(array: Any, axis: str, where: str) -> str:
    for name in AXES[axis]:
        if name in array.dims and name in array.coords:
            return name
    raise DataFormatError(
        f"{where} needs an axis of {axis} named {' or '.join(AXES[axis])} with its coordinates, has "
        f"{', '.join(map(str, array.dims)) or 'no axis'}"
    )


def _join(blocks: list[Block]) -> Block:
    """Blocks on one grid as one, with the mean of each day, in order of time."""
    first = blocks[0]
    for other in blocks[1:]:
        _check_same_grid(first, other)
    every = np.concatenate([block.day for block in blocks])
    order = np.argsort(every, kind="stable")
    values = _take(np.concatenate([block.values for block in blocks]), order)
    days, starts, counts = np.unique(every[order], return_index=True, return_counts=True)
    if len(days) < len(values):
        sums = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
        values = (sums / counts[:, None, None]).astype(np.float32)
    return Block(values, days, first.latitude, first.longitude, first.path)


def _take(values: npt.NDArray[np.float32], order: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
    """Rows in the given order, without a copy where that is the order they have."""
    return values if np.array_equal(order, np.arange(len(values))) else values[order]


def _check_same_grid(one: Block, two: Block) -> None:
    for name, left, right in (
        ("latitudes", one.latitude, two.latitude),
        ("longitudes", one.longitude, two.longitude),
    ):
        if left.shape != right.shape or not np.allclose(left, right, atol=1e-4):
            raise DataFormatError(
                f"'{one.path}' and '{two.path}' have different {name}: {len(left)} from {left[:1]} and "
                f"{len(right)} from {right[:1]}; bring both to one grid first"
            )


def _known_pair(present: set[str]) -> tuple[str, str] | None:
    return next((pair for pair in PAIRS if present.issuperset(pair)), None)


def _no_pair(source: str, variables: tuple[str, str] | None, present: set[str]) -> str:
    wanted = " and ".join(variables) if variables else "; ".join(" and ".join(pair) for pair in PAIRS)
    return (
        f"{source} should hold temperature and pressure as {wanted}; it holds "
        f"{', '.join(sorted(present)) or 'nothing'}. Give the files of both fields, and their names as "
        "`variables` if they are others"
    )


def _period(days: npt.NDArray[np.int64]) -> str:
    return f"{EPOCH + days[0]} to {EPOCH + days[-1]}"


def _name(paths: Sequence[Path]) -> str:
    return f"'{paths[0]}'" if len(paths) == 1 else f"'{paths[0]}' and {len(paths) - 1} more"
