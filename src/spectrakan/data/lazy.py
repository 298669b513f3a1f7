"""An array `(samples, time, *space, channel)` that is read from a file where and when it is indexed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import size_in_bytes
from spectrakan.fields import Source, blocks

HELD_BYTES = 2**28
"""Arrays up to this size (256 MiB, after striding) are held in memory; larger ones stay in their file."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some channels of a lazy array: a stored array and where its axes go.

    `axes[a]` is the stored axis that becomes axis a of `(samples, time, *space, channel)`, or None where the
    stored array lacks it and is repeated. Stored axes that are not named are the channels where `axes` names none,
    all of them as one; else they must have size one.
    """

    source: Source
    axes: tuple[int | None, ...]

    @property
    def rest(self) -> list[int]:
        """Stored axes that are not named."""
        return [axis for axis in range(len(self.source.shape)) if axis not in self.axes]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes in the order of the lazy array; those of axes that the stored array lacks are one."""
        *lead, channels = (None if axis is None else int(self.source.shape[axis]) for axis in self.axes)
        together = math.prod(int(self.source.shape[axis]) for axis in self.rest)
        return (*(size or 1 for size in lead), channels or together)

    def read(self, ranges: Sequence[range]) -> npt.NDArray[Any]:
        """The numbers at the given indices along each axis of the lazy array, not yet repeated."""
        block = [slice(0, size, 1) for size in self.source.shape]
        for axis, chosen in zip(self.axes, ranges, strict=True):
            if axis is not None:
                block[axis] = _forward(chosen)
        named = [axis for axis in self.axes if axis is not None]
        stored = np.asarray(self.source[tuple(block)]).transpose(*named, *self.rest)
        lead = [1 if axis is None else len(chosen) for axis, chosen in zip(self.axes[:-1], ranges, strict=False)]
        placed = stored.reshape(*lead, -1)
        if self.axes[-1] is None:
            placed = placed[..., _forward(ranges[-1])]
        return placed[tuple(slice(None, None, -1 if chosen.step < 0 else 1) for chosen in ranges)]


@dataclass(frozen=True, eq=False)
class LazyArray:
    """Stored arrays seen as one `(samples, time, *space, channel)`; parts are stacked along the channels.

    Indexing with integers, slices and an ellipsis reads just what is named and gives a NumPy array; `narrow` takes
    slices and reads nothing; `np.asarray` reads all.

    >>> lazy = LazyArray.stack([Part(np.arange(12.0).reshape(3, 4), (0, None, 1, None))])
    >>> lazy.shape, lazy[2, 0, ::2, 0].tolist(), lazy.narrow(slice(1, 3)).shape
    ((3, 1, 4, 1), [8.0, 10.0], (2, 1, 4, 1))
    """

    parts: tuple[Part, ...]
    ranges: tuple[range, ...]

    @classmethod
    def stack(cls, parts: Sequence[Part], lead: Sequence[int] = ()) -> LazyArray:
        """The whole of some parts, which agree in all axes but the channels, or in size with those of `lead`."""
        channels = sum(part.shape[-1] for part in parts)
        return cls(tuple(parts), tuple(range(size) for size in (*(lead or parts[0].shape[:-1]), channels)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(len(chosen) for chosen in self.ranges)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.ranges)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers, in the byte order of this machine."""
        return np.result_type(*{part.source.dtype for part in self.parts}).newbyteorder("=")

    @property
    def nbytes(self) -> int:
        """Memory that the whole would take."""
        return size_in_bytes(self.shape, self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def narrow(self, *slices: slice) -> LazyArray:
        """The part that slices along the first axes name, still unread."""
        rest = (slice(None),) * (self.ndim - len(slices))
        chosen = tuple(old[new] for old, new in zip(self.ranges, (*slices, *rest), strict=True))
        return LazyArray(self.parts, chosen)

    def __getitem__(self, key: Any) -> Any:
        entries = list(key) if isinstance(key, tuple) else [key]
        dots = [dim for dim, entry in enumerate(entries) if entry is Ellipsis]
        dim = dots[0] if dots else len(entries)
        entries[dim : dim + len(dots)] = [slice(None)] * (self.ndim - len(entries) + len(dots))
        basic = all(isinstance(entry, slice | int | np.integer) for entry in entries)
        if len(entries) != self.ndim or not basic:
            raise IndexError(f"a stored array of {self.ndim} axes is indexed by integers and slices, got {key!r}")
        # Integers are kept as ranges of length one until the end, so that no axis is lost.
        chosen = [old[entry] for old, entry in zip(self.ranges, entries, strict=True)]
        read = self._read([new if isinstance(new, range) else range(new, new + 1) for new in chosen])
        return read[tuple(slice(None) if isinstance(entry, slice) else 0 for entry in entries)]

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a stored array must be read, so it cannot be had without a copy")
        whole = np.empty(self.shape, self.dtype)
        for first, block in blocks(self):
            whole[first : first + len(block)] = block
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _read(self, ranges: Sequence[range]) -> npt.NDArray[Any]:
        result = np.empty([len(chosen) for chosen in ranges], self.dtype)
        if not result.size:
            return result
        first = 0
        for part in self.parts:
            inside = [place for place, c in enumerate(ranges[-1]) if first <= c < first + part.shape[-1]]
            if inside:
                target = slice(inside[0], inside[-1] + 1)
                channels = ranges[-1][target]
                own = range(channels.start - first, channels.stop - first, channels.step)
                result[..., target] = part.read([*ranges[:-1], own])
            first += part.shape[-1]
        return result


def _forward(chosen: range) -> slice:
    """The same indices, of which there are some, in increasing order, as stored arrays want them."""
    upward = chosen[::-1] if chosen.step < 0 else chosen
    return slice(upward[0], upward[-1] + 1, upward.step)
