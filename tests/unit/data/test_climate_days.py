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

from spectrakan.data.check import require_finite
from spectrakan.data.climate import load_climate
from spectrakan.errors import DataFormatError
from tools.make_climate import pack

AXES = {"lat": np.array([30.0, 0.0, -30.0]), "lon": np.array([0.0, 90.0, 180.0, 270.0])}


def stored_days(**changes: Any) -> dict[str, np.ndarray]:
    """Five days with some of their arrays changed; those of None are left out."""
    rng = np.random.default_rng(0)
    fields = {"temperature": rng.uniform(250, 300, (5, 3, 4)), "pressure": rng.uniform(950, 1030, (5, 3, 4))}
    return {name: value for name, value in ({**fields, **AXES} | changes).items() if value is not None}


def days_of(tmp_path: Path, **changes: Any) -> SimpleNamespace:
    """The days of an npz file with some of its arrays changed."""
    np.savez(tmp_path / "days.npz", **stored_days(**changes))
    return days_in(tmp_path / "days.npz")


def test_days_become_samples_of_a_steady_task(tmp_path: Path):
    stored, days = stored_days(), days_of(tmp_path)
    made = load_climate(tmp_path / "days.npz")
    assert made.steady
    assert made.name == "climate2d"
    np.testing.assert_array_equal(days.temperature, stored["temperature"][:, ::-1].astype(np.float32))
    np.testing.assert_array_equal(days.pressure, stored["pressure"][:, ::-1].astype(np.float32))
    assert days.latitude.tolist() == [-30.0, 0.0, 30.0]
    assert days.grid.boundary == ("wall", "periodic")
    assert [(field.name, field.unit) for field in (*made.input_fields, *made.fields)] == [
        ("temperature", "K"),
        ("pressure", "hPa"),
    ]


def test_packed_fields_are_unpacked(tmp_path: Path):
    stored = stored_days()
    days = days_of(tmp_path, **pack("temperature", stored["temperature"], 0.05))
    assert np.abs(days.temperature - stored["temperature"][:, ::-1]).max() <= 0.02503


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lat": None}, r"expected temperature, pressure, lat and lon, found .*temperature \(5, 3, 4\).*mapping"),
        ({"temperature": None, "warmth": np.zeros((5, 3, 4))}, "found .*warmth"),
        ({"pressure": np.full((5, 3, 4), 98_500.0)}, "numbers in hPa, found a median of 98500"),
        ({"lat": np.array([0.0, 90.0, 180.0])}, "cell edges must increase"),
        ({"lat": np.array(["a", "b", "c"])}, "an array of real numbers"),
        ({"temperature": np.full((5, 4, 3), 280.0)}, r"contradict|expected"),
        ({"temperature": np.full((5, 3, 4), "warm")}, "an array of real numbers"),
        ({"temperature": np.zeros((5, 3, 4), np.int16)}, "temperature_scale"),
        ({"temperature": np.zeros((5, 3, 4), np.int16), "temperature_scale": np.array(np.nan)}, "finite numbers"),
        ({"temperature": np.array([None, {}], dtype=object)}, "type object"),
        ({"lat": np.zeros(1), "temperature": np.full((5, 1, 4), 280.0)}, "expected|contradict"),
    ],
)
def test_each_defect_has_its_message(tmp_path: Path, changes: dict[str, Any], said: str):
    with pytest.raises(DataFormatError, match=said):
        days_of(tmp_path, **changes)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_missing_value_is_named_with_its_place_before_training(tmp_path: Path, bad: float):
    pressure = np.full((5, 3, 4), 1000.0)
    pressure[3, 1, 2] = bad
    days_of(tmp_path, pressure=pressure)
    with pytest.raises(DataFormatError, match=r"sample 3, frame 0, cell \(1, 2\), pressure"):
        require_finite(load_climate(tmp_path / "days.npz"), "days.npz")


def test_damaged_bytes_give_one_kind_of_error_or_a_valid_set(tmp_path: Path):
    np.savez_compressed(tmp_path / "whole.npz", **stored_days())
    whole = (tmp_path / "whole.npz").read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for trial in range(150):
        content = bytearray(whole)
        if trial % 3 == 0:
            content = content[: rng.integers(0, len(whole))]
        else:
            for place in rng.integers(0, len(whole), 4):
                content[place] ^= 1 << rng.integers(0, 8)
        (tmp_path / "a.npz").write_bytes(content)
        try:
            days = days_in(tmp_path / "a.npz")
        except DataFormatError:
            refused += 1
        else:
            assert days.pressure.shape[1:] == (3, 4)
    assert refused > 75


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
