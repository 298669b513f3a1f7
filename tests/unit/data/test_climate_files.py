from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectrakan.config import build_settings
from spectrakan.data.files import load_dataset
from spectrakan.data.prepare import DataSettings, prepare
from spectrakan.errors import ConfigError, DataFormatError

xarray = pytest.importorskip("xarray", reason="netCDF files are read with the extra 'climate'")

LATITUDE = np.arange(90.0, -91.0, -2.5, dtype=np.float32)
LONGITUDE = np.arange(0.0, 360.0, 2.5, dtype=np.float32)


def temperature_of(hours: np.ndarray) -> np.ndarray:
    """K, a known function of hours since 1800 and place."""
    north, east = np.radians(LATITUDE)[:, None], np.radians(LONGITUDE)
    wave = 5 * np.cos(north) * np.sin(east + 0.01 * (hours[:, None, None] - 1_665_000))
    return 250 + 50 * np.cos(north) ** 2 + wave


def pressure_of(hours: np.ndarray) -> np.ndarray:
    """Pa, falling where it is warm."""
    return 101_000 - 30 * (temperature_of(hours) - 280)


def write_ncep(folder: Path, name: str, year: int, hours_after: np.ndarray) -> Path:
    """A file as NCEP writes them: hours since 1800, north first, own words for units."""
    first = (np.datetime64(f"{year}-01-01") - np.datetime64("1800-01-01")) / np.timedelta64(1, "h")
    hours = first + hours_after
    field, unit, level, function = {
        "air": ("air", "degK", "sig995", temperature_of),
        "pres": ("pres", "Pascals", "sfc", pressure_of),
    }[name]
    dataset = xarray.Dataset(
        {field: (("time", "lat", "lon"), function(hours).astype(np.float32), {"units": unit})},
        coords={
            "time": ("time", hours, {"units": "hours since 1800-01-01 00:00:0.0"}),
            "lat": ("lat", LATITUDE, {"units": "degrees_north"}),
            "lon": ("lon", LONGITUDE, {"units": "degrees_east"}),
        },
    )
    path = folder / f"{field}.{level}.{year}.nc"
    dataset.to_netcdf(path, engine="h5netcdf")
    return path


DAYS = 24.0 * np.arange(3)
MAPPING: dict[str, Any] = {
    "inputs": [{"array": "air", "axes": ["sample", "x", "y"], "fields": ["temperature"], "units": ["K"]}],
    "values": [{"array": "pres", "axes": ["sample", "x", "y"], "fields": ["pressure"], "units": ["Pa"]}],
    "coordinates": {"x": "lat", "y": "lon"},
    "boundary": ["wall", "periodic"],
    "latitude": "x",
}
"""What `docs/climate.md` gives for files of NCEP."""


def together(folder: Path, *names: str, to: str = "days.nc") -> Path:
    """Files as one, as a user joins them by xarray."""
    parts = [xarray.load_dataset(folder / name, decode_times=False) for name in names]
    xarray.combine_by_coords(parts, join="inner").to_netcdf(folder / to, engine="h5netcdf")
    return folder / to


def test_years_of_two_variables_become_one_series_of_the_climate_problem(tmp_path: Path):
    paths = [write_ncep(tmp_path, name, year, DAYS) for year in (1990, 1991) for name in ("air", "pres")]
    joined = together(tmp_path, *(path.name for path in paths))
    split = {"train": 0.5, "validation": 0.25, "test": 0.25, "by": "sample_order"}
    made = prepare(
        "climate2d", build_settings(DataSettings, {"path": str(joined), "mapping": MAPPING, "split": split})
    ).trajectories
    starts = [
        (np.datetime64(f"{year}-01-01") - np.datetime64("1800-01-01")) // np.timedelta64(1, "h")
        for year in (1990, 1991)
    ]
    hours = np.concatenate([start + DAYS for start in starts])
    assert made.inputs is not None
    np.testing.assert_allclose(np.asarray(made.inputs)[:, 0, ..., 0], temperature_of(hours)[:, ::-1], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(made.values)[:, 0, ..., 0], pressure_of(hours)[:, ::-1], rtol=1e-6)
    latitude = made.grid.coordinates[0]
    assert (float(latitude[0]), float(latitude[-1])) == (-90.0, 90.0)
    faces = torch.cat([latitude[:1], (latitude[1:] + latitude[:-1]) / 2, latitude[-1:]])
    area = torch.deg2rad(faces).sin().diff() / 2
    torch.testing.assert_close(made.grid.weights[0], area, rtol=1e-6, atol=1e-9)


def test_a_file_with_levels_says_which(tmp_path: Path):
    paths = [write_ncep(tmp_path, name, 1990, DAYS) for name in ("air", "pres")]
    whole = xarray.load_dataset(together(tmp_path, *(path.name for path in paths)), decode_times=False)
    deep = whole.assign(air=whole["air"].expand_dims(level=[1000.0, 850.0], axis=1))
    deep.to_netcdf(tmp_path / "deep.nc", engine="h5netcdf")
    deep.isel(level=[0]).to_netcdf(tmp_path / "thin.nc", engine="h5netcdf")
    level = MAPPING | {"inputs": [MAPPING["inputs"][0] | {"axes": ["sample", "drop", "x", "y"]}]}
    with pytest.raises(DataFormatError, match=r"'air': expected axes .*, size 1 of an axis to drop"):
        load_dataset(tmp_path / "deep.nc", mapping=level)
    single = load_dataset(tmp_path / "thin.nc", mapping=level)
    whole_days = load_dataset(tmp_path / "days.nc", mapping=MAPPING)
    np.testing.assert_array_equal(np.asarray(single.inputs), np.asarray(whole_days.inputs))


def test_foreign_and_truncated_files_give_one_kind_of_error(tmp_path: Path):
    whole = write_ncep(tmp_path, "air", 1990, DAYS[:1])
    content = whole.read_bytes()
    damaged = tmp_path / "damaged.nc"
    for bad in (b"", b"no netCDF at all", content[:100], content[: len(content) // 2]):
        damaged.write_bytes(bad)
        with pytest.raises(DataFormatError, match=r"damaged\.nc"):
            load_dataset(damaged)


# From Python 3.12 on, files that xarray leaves open when a damaged header ends its reading are reported.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("engine", ["h5netcdf", "scipy"])
def test_flipped_bits_give_one_kind_of_error_or_a_valid_set(tmp_path: Path, engine: str):
    time, lat, lon = np.arange(2.0), np.array([40.0, 35.0]), np.array([0.0, 5.0, 10.0])
    pair = xarray.Dataset(
        {
            "tas": (("time", "lat", "lon"), np.full((2, 2, 3), 280.0), {"units": "K"}),
            "ps": (("time", "lat", "lon"), np.full((2, 2, 3), 1e5), {"units": "Pa"}),
        },
        coords={"time": ("time", time, {"units": "days since 2000-01-01"}), "lat": lat, "lon": lon},
    )
    pair.to_netcdf(tmp_path / "whole.nc", engine=engine)
    whole = (tmp_path / "whole.nc").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for trial in range(60):
        content = bytearray(whole)
        for place in rng.integers(0, len(whole), 1 + trial % 12):
            content[place] ^= 1 << rng.integers(0, 8)
        # A name of its own for each, for HDF5 remembers open files by name.
        damaged = tmp_path / f"damaged{trial}.nc"
        damaged.write_bytes(content)
        try:
            days = load_dataset(damaged)
        except DataFormatError:
            refused += 1
        else:
            assert np.asarray(days.values).size
    assert refused > 10


def test_without_xarray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_ncep(tmp_path, "air", 1990, DAYS[:1])
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ConfigError, match=r"spectrakan\[climate\]"):
        load_dataset(path)
