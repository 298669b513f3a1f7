from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from climate_days import days_in

from spectrakan.errors import DataFormatError

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


def together(folder: Path, *names: str, to: str = "days.nc") -> Path:
    """Files as one, as a user joins them by xarray."""
    parts = [xarray.load_dataset(folder / name, decode_times=False) for name in names]
    xarray.combine_by_coords(parts, join="inner").to_netcdf(folder / to, engine="h5netcdf")
    return folder / to


def test_years_of_two_variables_become_one_series(tmp_path: Path):
    paths = [write_ncep(tmp_path, name, year, DAYS) for year in (1990, 1991) for name in ("air", "pres")]
    days = days_in(together(tmp_path, *(path.name for path in paths)))
    starts = [
        (np.datetime64(f"{year}-01-01") - np.datetime64("1800-01-01")) // np.timedelta64(1, "h")
        for year in (1990, 1991)
    ]
    hours = np.concatenate([start + DAYS for start in starts])
    np.testing.assert_allclose(days.temperature, temperature_of(hours)[:, ::-1], rtol=1e-6)
    np.testing.assert_allclose(days.pressure, pressure_of(hours)[:, ::-1] / 100, rtol=1e-6)
    assert (days.latitude[0], days.latitude[-1]) == (-90.0, 90.0)
    assert days.grid.boundary == ("wall", "periodic")


def test_one_half_of_a_pair_is_not_enough(tmp_path: Path):
    with pytest.raises(DataFormatError, match=r"air and pres.*it holds air.*Put both fields into one file"):
        days_in(write_ncep(tmp_path, "air", 1990, DAYS))


def test_a_file_with_levels_says_which(tmp_path: Path):
    paths = [write_ncep(tmp_path, name, 1990, DAYS) for name in ("air", "pres")]
    whole = xarray.load_dataset(together(tmp_path, *(path.name for path in paths)), decode_times=False)
    deep = whole.assign(air=whole["air"].expand_dims(level=[1000.0, 850.0], axis=1))
    deep.to_netcdf(tmp_path / "deep.nc", engine="h5netcdf")
    deep.isel(level=[0]).to_netcdf(tmp_path / "thin.nc", engine="h5netcdf")
    with pytest.raises(DataFormatError, match=r"'air': expected size 1 of an axis to drop"):
        days_in(tmp_path / "deep.nc")
    single = days_in(tmp_path / "thin.nc")
    np.testing.assert_array_equal(single.temperature, days_in(tmp_path / "days.nc").temperature)


def test_foreign_and_truncated_files_give_one_kind_of_error(tmp_path: Path):
    whole = write_ncep(tmp_path, "air", 1990, DAYS[:1])
    content = whole.read_bytes()
    damaged = tmp_path / "damaged.nc"
    for bad in (b"", b"no netCDF at all", content[:100], content[: len(content) // 2]):
        damaged.write_bytes(bad)
        with pytest.raises(DataFormatError, match=r"damaged\.nc"):
            days_in(damaged)


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
            days = days_in(damaged)
        except DataFormatError:
            refused += 1
        else:
            assert np.isfinite(days.pressure).all()
    assert refused > 10


def test_without_xarray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_ncep(tmp_path, "air", 1990, DAYS[:1])
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(DataFormatError, match=r"spectrakan\[climate\]"):
        days_in(path)


def test_era_interim_files_and_their_npz_copy_agree(reference_data: Path, tmp_path: Path):
    folder = reference_data / "climate"
    archive = days_in(folder / "eraint_daily_t850_mslp_z500_weurope_2000_2010.npz")
    parts = [xarray.load_dataset(folder / name) for name in ("t850_ei.nc", "mslp_ei.nc")]
    xarray.merge(parts, join="inner").to_netcdf(tmp_path / "days.nc", engine="h5netcdf")
    days = days_in(tmp_path / "days.nc")
    np.testing.assert_array_equal(days.latitude, np.arange(30.0, 56.0, 2.5))
    np.testing.assert_allclose(days.temperature, archive.temperature, atol=2e-4)
    np.testing.assert_allclose(days.pressure, archive.pressure, atol=2e-4)
    assert days.grid.boundary == ("outflow", "outflow")
