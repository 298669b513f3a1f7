"""Foreign exceptions become one kind of error; our own and the user's wish to stop pass through."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectrakan.data.decoding import decoding, mismatch
from spectrakan.errors import ConfigError, DataFormatError

PLACE = Path("data.h5")


@pytest.mark.parametrize("kind", [OSError, KeyError, RuntimeError, StopIteration, MemoryError, RecursionError])
def test_whatever_a_decoder_raises_is_named_with_its_place(kind: type[Exception]):
    message = r"'data\.h5', 'tensor': expected readable HDF5, found .*boom"
    with pytest.raises(DataFormatError, match=message) as caught, decoding(PLACE, "tensor", kind="HDF5"):
        raise kind("boom")
    assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("kind", [ConfigError, KeyboardInterrupt, SystemExit])
def test_our_own_errors_and_interrupts_pass(kind: type[BaseException]):
    with pytest.raises(kind, match="boom"), decoding(PLACE):
        raise kind("boom")


def test_long_reasons_are_cut_to_one_line():
    with pytest.raises(DataFormatError) as caught, decoding(PLACE):
        raise ValueError("line\n" * 1000)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_mismatch_says_file_key_expected_and_found():
    error = mismatch(PLACE, "nu", "3 axes", "2", "transpose it")
    assert str(error) == "'data.h5', 'nu': expected 3 axes, found 2; transpose it"
