from __future__ import annotations

from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from climate_days import days_in

from spectrakan.data.climate import SHIPPED, load_climate
from spectrakan.data.files import write_dataset
from spectrakan.errors import DataFormatError
from spectrakan.runs import data_digest


@pytest.fixture(scope="module")
def shipped_file() -> dict[str, np.ndarray]:
    with resources.as_file(resources.files("spectrakan.data") / SHIPPED) as path, np.load(path) as file:
        return {name: file[name] for name in file.files}


def test_the_shipped_set_is_small_and_says_how_it_was_made(shipped_file: dict[str, np.ndarray]):
    with resources.as_file(resources.files("spectrakan.data") / SHIPPED) as path:
        assert path.stat().st_size <= 5_000_000
    assert shipped_file["temperature"].dtype == shipped_file["pressure"].dtype == np.int16
    said = str(shipped_file["source"])
    assert "jcm 3.0.0" in said
    assert "dinosaur 1.5.1" in said
    assert "tools/make_climate.py" in said


def test_the_shipped_fields_are_two_whole_years_in_physical_units():
    days = days_in()
    assert len(days.pressure) == 730
    # Steps of 0.05 around a multiple of 0.05 leave nothing between them.
    for values in (days.temperature, days.pressure):
        steps = values.astype(np.float64) / 0.05
        assert np.abs(steps - np.rint(steps)).max() < 2e-3
    weights = days.grid.volumes().numpy()
    # The model keeps the area mean of log p, set to that of 985 hPa.
    geometric = np.exp((np.log(days.pressure.astype(np.float64)) * weights).sum(axis=(1, 2)))
    np.testing.assert_allclose(geometric, 985.0, atol=0.01)
    assert 285.0 < float((days.temperature.mean(axis=0) * weights).sum()) < 290.0


def test_the_seasons_of_the_shipped_set_are_those_of_the_calendar(shipped_file: dict[str, np.ndarray]):
    days = days_in()
    dates = np.datetime64("2000-01-01") + shipped_file["day"]
    np.testing.assert_array_equal(np.diff(shipped_file["day"]), 1)
    assert (str(dates[0]), str(dates[-1])) == ("2000-03-01", "2002-02-28")
    month = dates.astype("datetime64[M]").astype(int) % 12
    north, south = days.latitude > 45, days.latitude < -45
    january, july = days.temperature[month == 0], days.temperature[month == 6]
    assert january[:, north].mean() + 10 < july[:, north].mean()
    assert july[:, south].mean() + 3 < january[:, south].mean()


def test_pressure_falls_with_the_height_of_the_ground(shipped_file: dict[str, np.ndarray]):
    days = days_in()
    height = shipped_file["orography"]
    # p = p0 exp(-g z / (R T)) with the temperature of the ground alone, so sea level is met within 6 %.
    sea_level = days.pressure.mean(axis=0) * np.exp(9.81 * height / (287.0 * days.temperature.mean(axis=0)))
    assert height.max() > 3000
    assert np.abs(sea_level[height > 1000] / 1013.0 - 1).max() < 0.06
    assert 0 <= shipped_file["land_fraction"].min() <= shipped_file["land_fraction"].max() <= 1


def longer_days(reference_data: Path) -> SimpleNamespace:
    """The days of a longer simulation, in hPa as `load_climate` gives them."""
    with np.load(reference_data / "climate" / "gcm_daily.npz") as file:
        fields = {"temperature": file["temperature"], "pressure": file["pressure"] / 100, "latitude": file["lat"]}
    return SimpleNamespace(**fields)


def test_the_shipped_set_has_the_climate_of_the_longer_one(reference_data: Path):
    shipped, long = days_in(), longer_days(reference_data)
    years = slice(0, 4 * 365)
    np.testing.assert_allclose(shipped.latitude, long.latitude)
    for name, unit in (("temperature", 1.5), ("pressure", 4.0)):
        ours, theirs = getattr(shipped, name), getattr(long, name)[years]
        assert np.abs(ours.mean(axis=(0, 2)) - theirs.mean(axis=(0, 2))).max() < unit
        spread, expected = ours.std(axis=0).mean(), theirs.std(axis=0).mean()
        assert spread == pytest.approx(expected, rel=0.05)


def test_paths_that_lead_nowhere_are_named(tmp_path: Path):
    with pytest.raises(DataFormatError, match=r"cannot read '.*none\.nc'"):
        load_climate(tmp_path / "none.nc")
    with pytest.raises(DataFormatError, match="expected a regular file"):
        load_climate(tmp_path)


def test_a_set_of_our_own_is_read_as_it_was_written(tmp_path: Path):
    days = load_climate().select(slice(3))
    again = load_climate(write_dataset(tmp_path / "days.h5", days))
    np.testing.assert_array_equal(np.asarray(again.values), np.asarray(days.values))
    assert data_digest(again) == data_digest(days)
