from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spectrakan.data.packing import Packed, pack
from spectrakan.errors import DataFormatError


@given(
    values=arrays(np.float64, st.integers(1, 40), elements=st.floats(550.0, 1090.0)),
    quantum=st.sampled_from([0.01, 0.02, 0.05, 0.1]),
)
def test_a_value_comes_back_within_half_a_quantum(values: np.ndarray, quantum: float):
    back = pack(values, quantum).unpack()
    rounding = np.spacing(np.float32(1100.0))
    assert np.abs(back - values).max() <= quantum / 2 + rounding


def test_the_error_is_as_large_as_half_a_quantum_and_evenly_spread():
    values = np.linspace(990.0, 1030.0, 100_001)
    error = pack(values, 0.05).unpack() - values
    assert np.abs(error).max() == pytest.approx(0.025, rel=1e-2)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(0.05 / np.sqrt(12), rel=1e-2)


def test_packing_what_was_unpacked_changes_nothing():
    first = pack(np.random.default_rng(0).uniform(209.0, 311.0, 5000), 0.05)
    again = pack(first.unpack(), 0.05)
    np.testing.assert_array_equal(again.integers, first.integers)


def test_a_range_too_wide_for_16_bits_is_refused_with_the_step_it_needs():
    values = np.array([0.0, 1000.0])
    with pytest.raises(DataFormatError, match=r"step of at least 0\.0153"):
        pack(values, 0.01)
    assert np.abs(pack(values, 0.0153).integers).max() <= 32767


@pytest.mark.parametrize("bad", [np.array([1.0, np.nan]), np.array([np.inf]), np.zeros(0)])
def test_values_that_are_not_numbers_are_refused(bad: np.ndarray):
    with pytest.raises(DataFormatError, match="finite"):
        pack(bad, 0.1)


def test_arrays_of_a_file_are_read_back_or_refused():
    packed = pack(np.array([270.0, 290.0]), 0.5)
    stored = packed.arrays("temperature")
    np.testing.assert_array_equal(Packed.from_arrays("temperature", stored).unpack(), [270.0, 290.0])
    with pytest.raises(DataFormatError, match="temperature_offset"):
        Packed.from_arrays("temperature", {k: v for k, v in stored.items() if not k.endswith("offset")})
    with pytest.raises(DataFormatError, match="int16"):
        Packed.from_arrays("temperature", stored | {"temperature": np.zeros(2, np.int64)})
    with pytest.raises(DataFormatError, match="positive scale"):
        Packed.from_arrays("temperature", stored | {"temperature_scale": np.array(-1.0)})
