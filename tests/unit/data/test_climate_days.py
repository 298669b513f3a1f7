from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spectrakan.data.climate import read_climate
from spectrakan.data.climate_days import ClimateDays, day_numbers, orient, to_standard_unit
from spectrakan.errors import DataFormatError
from tools.make_climate import pack


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
    assert made.name == "climate2d"
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


def unpack(stored: dict[str, np.ndarray]) -> np.ndarray:
    return (stored["p"] * stored["p_scale"] + stored["p_offset"]).astype(np.float32)


@given(
    values=arrays(np.float64, st.integers(1, 40), elements=st.floats(550.0, 1090.0)),
    quantum=st.sampled_from([0.01, 0.02, 0.05, 0.1]),
)
def test_a_packed_value_comes_back_within_half_a_quantum(values: np.ndarray, quantum: float):
    rounding = np.spacing(np.float32(1100.0))
    assert np.abs(unpack(pack("p", values, quantum)) - values).max() <= quantum / 2 + rounding


def test_the_error_is_as_large_as_half_a_quantum_and_evenly_spread():
    values = np.linspace(990.0, 1030.0, 100_001)
    error = unpack(pack("p", values, 0.05)) - values
    assert np.abs(error).max() == pytest.approx(0.025, rel=1e-2)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(0.05 / np.sqrt(12), rel=1e-2)


def test_packing_what_was_unpacked_changes_nothing():
    first = pack("p", np.random.default_rng(0).uniform(209.0, 311.0, 5000), 0.05)
    np.testing.assert_array_equal(pack("p", unpack(first), 0.05)["p"], first["p"])


def test_a_range_too_wide_for_16_bits_is_refused_with_the_step_it_needs():
    values = np.array([0.0, 1000.0])
    with pytest.raises(SystemExit, match=r"step of at least 0\.0153"):
        pack("p", values, 0.01)
    assert np.abs(pack("p", values, 0.0153)["p"]).max() <= 32767


@pytest.mark.parametrize("bad", [np.array([1.0, np.nan]), np.array([np.inf]), np.zeros(0)])
def test_values_that_are_not_numbers_are_refused(bad: np.ndarray):
    with pytest.raises(SystemExit, match="finite"):
        pack("p", bad, 0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tas_offset": None}, "tas_offset"),
        ({"tas_scale": np.array([1.0, 2.0])}, "tas_scale"),
        ({"tas": np.zeros((2, 2, 2), np.int64)}, "int16"),
        ({"tas_scale": np.array(-1.0)}, "positive scale"),
        ({"tas_offset": np.array(np.nan)}, "finite numbers"),
    ],
)
def test_packed_arrays_of_a_file_are_complete_or_refused(tmp_path: Path, change: dict[str, Any], message: str):
    axes = {"lat": np.array([-45.0, 45.0]), "lon": np.array([0.0, 180.0]), "time": np.arange(2)}
    pressure = np.full((2, 2, 2), 1e5)
    stored = axes | pack("tas", np.linspace(270.0, 290.0, 8).reshape(2, 2, 2), 0.5) | {"ps": pressure}
    np.savez(tmp_path / "whole.npz", **stored)
    assert read_climate(tmp_path / "whole.npz").temperature[1, 1, 1] == 290.0
    broken = {key: array for key, array in (stored | change).items() if array is not None}
    np.savez(tmp_path / "broken.npz", **broken)
    with pytest.raises(DataFormatError, match=message):
        read_climate(tmp_path / "broken.npz")
