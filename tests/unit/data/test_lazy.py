"""A lazy array must be indistinguishable from the NumPy array that its parts describe, and read no more."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.data.container import GroupedSource
from spectrakan.data.lazy import LazyArray, Part

SHAPE = (4, 5, 3, 6)  # samples, time, x, y


@dataclass
class CountingSource:
    """A held array that notes how many numbers were taken from it."""

    array: Any
    taken: list[int] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def __getitem__(self, block: tuple[slice, ...]) -> Any:
        read = self.array[block]
        self.taken.append(read.size)
        return read


def stacked() -> tuple[LazyArray, np.ndarray]:
    """Channels from an array in another order of axes, one with two channels, and one kept in groups."""
    rng = np.random.default_rng(0)
    swapped = rng.standard_normal((6, 4, 1, 3, 5))  # y, sample, nothing, x, time
    double = rng.standard_normal((*SHAPE, 2))
    groups = rng.standard_normal(SHAPE)
    lazy = LazyArray.stack(
        [
            Part(swapped, (1, 4, 3, 0, None)),
            Part(double, (0, 1, 2, 3, 4)),
            Part(GroupedSource(tuple(groups)), (0, 1, 2, 3, None)),
        ]
    )
    whole = np.concatenate([swapped[:, :, 0].transpose(1, 3, 2, 0)[..., None], double, groups[..., None]], axis=-1)
    return lazy, whole


def slices(size: int) -> st.SearchStrategy[slice]:
    ends = st.none() | st.integers(-size - 2, size + 2)
    return st.builds(slice, ends, ends, st.none() | st.sampled_from([1, 2, 3, -1, -2]))


def entries(size: int) -> st.SearchStrategy[Any]:
    return st.integers(-size, size - 1) | slices(size)


@given(st.tuples(*(entries(size) for size in (*SHAPE, 4))), st.integers(0, 5))
def test_indexing_agrees_with_numpy(key: tuple[Any, ...], length: int):
    lazy, whole = stacked()
    np.testing.assert_array_equal(lazy[key[:length]], whole[key[:length]])


@given(st.tuples(*(slices(size) for size in SHAPE)), st.tuples(*(slices(size) for size in SHAPE)), st.booleans())
def test_narrowing_composes_and_reads_nothing(first: Any, second: Any, dots: bool):
    lazy, whole = stacked()
    narrowed = lazy.narrow(*first)
    expected = whole[first]
    assert narrowed.shape == expected.shape
    key = (Ellipsis, slice(1, 3)) if dots else second
    np.testing.assert_array_equal(narrowed[key], expected[key])
    np.testing.assert_array_equal(np.asarray(narrowed), expected)


def test_only_what_is_named_is_read():
    source = CountingSource(np.arange(100 * 50 * 8).reshape(100, 50, 8))
    lazy = LazyArray.stack([Part(source, (0, 1, 2, None))])
    coarse = lazy.narrow(slice(None, None, 10), slice(None, None, 5), slice(None, None, 4))
    assert source.taken == []
    coarse[3, 2:4]
    assert source.taken == [2 * 2]
    lazy[5, 0]
    assert source.taken == [4, 8]
    other = LazyArray.stack(
        [Part(source, (0, 1, 2, None)), Part(CountingSource(np.zeros((100, 50, 8))), (0, 1, 2, None))]
    )
    other[0, 0, :, 1]
    assert source.taken == [4, 8], "the channel of the other part was asked for"


def test_integers_along_all_axes_give_one_number():
    lazy, whole = stacked()
    assert lazy[1, 2, 0, 3, 2] == whole[1, 2, 0, 3, 2]
    assert np.ndim(lazy[1, 2, 0, 3, 2]) == 0


def test_groups_open_only_the_named_members():
    members = tuple(CountingSource(np.full((3, 2), float(number))) for number in range(5))
    lazy = LazyArray.stack([Part(GroupedSource(members), (0, 1, 2, None))])
    assert lazy[3, 0].tolist() == [[3.0], [3.0]]
    assert [len(member.taken) for member in members] == [0, 0, 0, 1, 0]


def test_type_is_native_and_wide_enough():
    big = np.arange(3, dtype=">f4").reshape(3, 1)
    double = np.arange(3, dtype="<f8").reshape(3, 1)
    alone = LazyArray.stack([Part(big, (0, None, 1, None))])
    assert alone.dtype == np.float32
    assert alone[...].dtype == np.dtype("=f4")
    assert alone[:, 0, 0, 0].tolist() == [0.0, 1.0, 2.0]
    both = LazyArray.stack([Part(big, (0, None, 1, None)), Part(double, (0, None, 1, None))])
    assert both.dtype == np.float64
    assert np.asarray(both, dtype=np.float32).dtype == np.float32


def test_it_can_be_pickled_and_iterated():
    lazy, whole = stacked()
    again = pickle.loads(pickle.dumps(lazy))  # noqa: S301
    np.testing.assert_array_equal(np.stack(list(again)), whole)
    assert len(again) == 4
    assert again.nbytes == whole.nbytes
    assert again.ndim == 5


@pytest.mark.parametrize("key", [None, 4, -5, (0,) * 6, 1.5, [0], (0, ..., 0, ...)])
def test_other_indices_are_refused(key: Any):
    with pytest.raises(IndexError):
        stacked()[0][key]


def test_it_cannot_be_had_without_reading():
    with pytest.raises(ValueError, match="copy"):
        np.asarray(stacked()[0], copy=False)


def test_what_a_stored_array_lacks_is_repeated_and_axes_without_a_name_are_channels():
    stored = np.random.default_rng(0).standard_normal((2, 3, 2, 2))
    lazy = LazyArray.stack(
        [Part(stored, (0, None, 1, None)), Part(stored[0, :, 0, 0], (None, None, 0, None))], (2, 5, 3)
    )
    expected = np.empty((2, 5, 3, 5))
    expected[..., :4] = stored.reshape(2, 1, 3, 4)
    expected[..., 4] = stored[0, :, 0, 0]
    np.testing.assert_array_equal(np.asarray(lazy), expected)
    np.testing.assert_array_equal(lazy[1, 4:0:-2, ::-1, ::-2], expected[1, 4:0:-2, ::-1, ::-2])
    np.testing.assert_array_equal(lazy[0, 2, 1, 1:4], expected[0, 2, 1, 1:4])
