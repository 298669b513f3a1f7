from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spectrakan.data.climate_days import ClimateDays, day_numbers, orient, to_standard_unit
from spectrakan.errors import DataFormatError


@pytest.fixture
def days() -> ClimateDays:
    rng = np.random.default_rng(0)
    return ClimateDays(
        temperature=rng.uniform(250, 300, (5, 3, 4)).astype(np.float32),
        pressure=rng.uniform(950, 1030, (5, 3, 4)).astype(np.float32),
        latitude=np.array([-30.0, 0.0, 30.0]),
        longitude=np.array([0.0, 90.0, 180.0, 270.0]),
        day=np.array([0, 1, 2, 5, 6]),
        source="'memory'",
    )


def test_days_become_samples_of_a_steady_task(days: ClimateDays):
    made = days.trajectories()
    assert made.steady
    assert made.task == "climate2d"
    assert made.inputs is not None
    np.testing.assert_array_equal(np.asarray(made.inputs)[:, 0, :, :, 0], days.temperature)
    np.testing.assert_array_equal(np.asarray(made.values)[:, 0, :, :, 0], days.pressure)
    assert [(field.name, field.unit) for field in (*made.input_fields, *made.fields)] == [
        ("temperature", "K"),
        ("pressure", "hPa"),
    ]
    assert str(days.dates[3]) == "2000-01-06"


@pytest.mark.parametrize(
    ("name", "stored", "unit", "standard"),
    [
        ("temperature", 288.15, "K", 288.15),
        ("temperature", 288.15, "degK", 288.15),
        ("temperature", 15.0, "degC", 288.15),
        ("temperature", 15.0, "", 288.15),
        ("temperature", 288.15, "", 288.15),
        ("pressure", 101325.0, "Pascals", 1013.25),
        ("pressure", 101325.0, "", 1013.25),
        ("pressure", 1013.25, "millibars", 1013.25),
        ("pressure", 1013.25, "no such unit", 1013.25),
        ("pressure", 101.325, "kPa", 1013.25),
        ("pressure", 101.325, "", 1013.25),
    ],
)
def test_units_by_name_or_by_size(name: str, stored: float, unit: str, standard: float):
    assert to_standard_unit(name, np.full(3, stored), unit, "x").tolist() == pytest.approx([standard] * 3)


def test_a_field_of_no_known_unit_is_refused():
    with pytest.raises(DataFormatError, match=r"'m' has the median 5500.*Pa \(30000 to 110000\)"):
        to_standard_unit("pressure", np.full(3, 5500.0), "m", "x")
    for nothing in (np.zeros(0), np.full(3, np.nan)):
        with pytest.raises(DataFormatError, match="median nan"):
            to_standard_unit("pressure", nothing, "", "x")


def test_a_number_too_large_becomes_infinite_and_is_refused_with_its_place(days: ClimateDays):
    stored = days.pressure.astype(np.float64)
    stored[4, 0, 1] = 1e300
    with pytest.raises(DataFormatError, match=r"infinite values, the first on day 6.*\(0, 1\)"):
        replace(days, pressure=to_standard_unit("pressure", stored, "hPa", "x"))


def test_axes_are_turned_south_to_north_and_eastward():
    north_first, wrapped = np.array([10.0, 0.0, -10.0]), np.array([0.0, 90.0, -180.0, -90.0])
    values = (100 * north_first[:, None] + wrapped).astype(np.float32)[None]
    turned = orient(values, north_first, wrapped)
    expected = 100 * np.sort(north_first)[:, None] + np.sort(wrapped)
    np.testing.assert_array_equal(turned[0], expected)


def test_days_are_counted_from_2000():
    dates = np.array(["1999-12-31", "2000-03-01"])
    assert day_numbers(dates, "x").tolist() == [-1, 60]
    assert day_numbers(dates.astype("datetime64[ns]"), "x").tolist() == [-1, 60]
    assert day_numbers(np.array([7, 8], np.int32), "x").tolist() == [7, 8]
    with pytest.raises(DataFormatError, match="such as"):
        day_numbers(np.array(["yesterday"]), "x")
    with pytest.raises(DataFormatError, match="one day for each field"):
        day_numbers(np.zeros((2, 2), int), "x")


def test_a_missing_value_is_named_with_its_place(days: ClimateDays):
    pressure = days.pressure.copy()
    pressure[3, 1, 2] = np.nan
    with pytest.raises(DataFormatError, match=r"day 5 \(2000-01-06\) at point \(1, 2\)"):
        replace(days, pressure=pressure)


def test_what_contradicts_itself_is_refused(days: ClimateDays):
    with pytest.raises(DataFormatError, match="swapped"):
        replace(days, temperature=days.pressure, pressure=days.temperature)
    with pytest.raises(DataFormatError, match="days must increase"):
        replace(days, day=np.array([0, 1, 1, 2, 3]))
    with pytest.raises(DataFormatError, match="latitude must be different degrees within ±90"):
        replace(days, latitude=np.array([0.0, 90.0, 180.0]))
    with pytest.raises(DataFormatError, match=r"temperature must be \(days, lat, lon\) = \(5, 3, 4\)"):
        replace(days, temperature=days.temperature.swapaxes(1, 2))
    with pytest.raises(DataFormatError, match="at least 2 x 2"):
        replace(days, temperature=days.temperature[:0], pressure=days.pressure[:0], day=days.day[:0])
