from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from climate_days import days_in
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spectrakan.data.climate import load_climate
from spectrakan.errors import DataFormatError
from tools.make_climate import pack

AXES = {"lat": np.array([-30.0, 0.0, 30.0]), "lon": np.array([0.0, 90.0, 180.0, 270.0])}


def days_of(tmp_path: Path, **changes: Any) -> SimpleNamespace:
    """Five days in an npz file, with some of its arrays changed."""
    rng = np.random.default_rng(0)
    fields = {"tas": rng.uniform(250, 300, (5, 3, 4)), "ps": rng.uniform(950, 1030, (5, 3, 4))}
    np.savez(tmp_path / "days.npz", **({**fields, **AXES, "time": np.array([0, 1, 2, 5, 6])} | changes))
    return days_in(tmp_path / "days.npz")


def test_days_become_samples_of_a_steady_task(tmp_path: Path):
    days = days_of(tmp_path)
    made = load_climate(tmp_path / "days.npz")
    assert made.steady
    assert made.name == "climate2d"
    assert made.inputs is not None
    np.testing.assert_array_equal(np.asarray(made.inputs)[:, 0, :, :, 0], days.temperature)
    np.testing.assert_array_equal(np.asarray(made.values)[:, 0, :, :, 0], days.pressure)
    assert [(field.name, field.unit) for field in (*made.input_fields, *made.fields)] == [
        ("temperature", "K"),
        ("pressure", "hPa"),
    ]


@pytest.mark.parametrize(
    ("name", "stored", "standard"),
    [
        ("temperature", 288.15, 288.15),
        ("temperature", 15.0, 288.15),
        ("pressure", 101325.0, 1013.25),
        ("pressure", 1013.25, 1013.25),
        ("pressure", 101.325, 1013.25),
    ],
)
def test_units_by_size(tmp_path: Path, name: str, stored: float, standard: float):
    days = days_of(tmp_path, **{"tas" if name == "temperature" else "ps": np.full((5, 3, 4), stored)})
    assert getattr(days, name) == pytest.approx(np.full((5, 3, 4), standard))


def test_a_field_of_no_known_unit_is_refused(tmp_path: Path):
    with pytest.raises(DataFormatError, match=r"pressure has the median 5500.*Pa \(30000 to 110000\)"):
        days_of(tmp_path, ps=np.full((5, 3, 4), 5500.0))


def test_days_must_be_in_order(tmp_path: Path):
    dates = np.array(["1999-12-31", "2000-03-01", "2000-03-02", "2000-03-03", "2000-03-04"])
    for times in (dates, dates.astype("datetime64[ns]"), np.array([-1, 60, 61, 62, 63], np.int32)):
        assert len(days_of(tmp_path, time=times).pressure) == 5
        with pytest.raises(DataFormatError, match="'time': expected 5 times in order"):
            days_of(tmp_path, time=times[::-1])
    with pytest.raises(DataFormatError, match="'time': expected 5 times in order"):
        days_of(tmp_path, time=np.zeros((5, 2), int))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_missing_value_is_named_with_its_place(tmp_path: Path, bad: float):
    pressure = np.full((5, 3, 4), 1000.0)
    pressure[3, 1, 2] = bad
    with pytest.raises(DataFormatError, match=r"1 missing or infinite values, the first at .* \(3, 1, 2\)"):
        days_of(tmp_path, ps=pressure)


def test_what_contradicts_itself_is_refused(tmp_path: Path):
    with pytest.raises(DataFormatError, match="swapped"):
        days_of(tmp_path, tas=np.full((5, 3, 4), 1000.0), ps=np.full((5, 3, 4), 280.0))
    with pytest.raises(DataFormatError, match="cell edges must increase"):
        days_of(tmp_path, lat=np.array([0.0, 90.0, 180.0]))
    with pytest.raises(DataFormatError, match=r"contradict|expected"):
        days_of(tmp_path, tas=np.full((5, 4, 3), 280.0))
    with pytest.raises(DataFormatError, match="expected 3 cell centres along x, found 1"):
        days_of(tmp_path, lat=np.zeros(1), tas=np.full((5, 1, 4), 280.0))


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
        ({"tas_offset": np.array(np.nan)}, "finite numbers"),
    ],
)
def test_packed_arrays_of_a_file_are_complete_or_refused(tmp_path: Path, change: dict[str, Any], message: str):
    axes = {"lat": np.array([-45.0, 45.0]), "lon": np.array([0.0, 180.0]), "time": np.arange(2)}
    pressure = np.full((2, 2, 2), 1e5)
    stored = axes | pack("tas", np.linspace(270.0, 290.0, 8).reshape(2, 2, 2), 0.5) | {"ps": pressure}
    np.savez(tmp_path / "whole.npz", **stored)
    assert days_in(tmp_path / "whole.npz").temperature[1, 1, 1] == 290.0
    broken = {key: array for key, array in (stored | change).items() if array is not None}
    np.savez(tmp_path / "broken.npz", **broken)
    with pytest.raises(DataFormatError, match=message):
        days_in(tmp_path / "broken.npz")
