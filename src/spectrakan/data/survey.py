"""One pass over stored fields: their ranges, and where numbers are not numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.progress import Progress
from spectrakan.errors import DataFormatError
from spectrakan.fields import Array, FieldSpec, Trajectories

PLACES_KEPT = 10
"""Places of bad numbers that are listed; all of them are counted."""
BLOCK_VALUES = 2**22


@dataclass(frozen=True)
class Place:
    """Where a NaN or an infinity stands."""

    array: str
    sample: int
    frame: int
    cell: tuple[int, ...]
    field: str
    value: str

    def __str__(self) -> str:
        cell = ", ".join(str(index) for index in self.cell)
        place = f"sample {self.sample}, frame {self.frame}, cell ({cell}), {self.field}"
        return f"{self.value} in {self.array}: {place}"


@dataclass(frozen=True)
class FieldRange:
    """What the finite numbers of a field are like; all None where there is none."""

    array: str
    field: FieldSpec
    minimum: float | None
    maximum: float | None
    mean: float | None
    bad_count: int

    @property
    def constant(self) -> bool:
        """Whether the field has one value everywhere."""
        return self.minimum is not None and self.minimum == self.maximum


@dataclass(frozen=True)
class Survey:
    """Ranges of all fields of one array, and the first bad numbers in stored order."""

    ranges: tuple[FieldRange, ...]
    places: tuple[Place, ...]


def survey(name: str, values: Array, fields: Sequence[FieldSpec], progress: Progress | None = None) -> Survey:
    """Read `values` `(samples, time, *space, channel)` once, a few samples at a time."""
    tallies = [_Tally() for _ in fields]
    places: list[Place] = []
    step = max(1, BLOCK_VALUES // max(1, int(np.prod(values.shape[1:]))))
    total = int(values.shape[0])
    for begin in range(0, total, step):
        block = np.asarray(values[begin : begin + step])
        for channel, tally in enumerate(tallies):
            tally.add(block[..., channel])
        if len(places) < PLACES_KEPT:
            places += _places(name, block, begin, fields)[: PLACES_KEPT - len(places)]
        if progress is not None:
            progress(min(begin + step, total), total)
    ranges = (tally.summary(name, field) for tally, field in zip(tallies, fields, strict=True))
    return Survey(tuple(ranges), tuple(places))


def require_finite(trajectories: Trajectories, source: str) -> None:
    """Refuse a set with a NaN or an infinity, saying where the first one is."""
    arrays = [("values", trajectories.values, trajectories.fields)]
    if trajectories.inputs is not None:
        arrays.append(("inputs", trajectories.inputs, trajectories.input_fields))
    for name, values, fields in arrays:
        step = max(1, BLOCK_VALUES // max(1, int(np.prod(values.shape[1:]))))
        for begin in range(0, int(values.shape[0]), step):
            if places := _places(name, np.asarray(values[begin : begin + step]), begin, fields):
                raise DataFormatError(
                    f"'{source}' holds numbers that are none, the first is {places[0]}; `spectrakan check` lists more"
                )


class _Tally:
    """Running extremes, sum and counts of one channel."""

    def __init__(self) -> None:
        self.minimum, self.maximum = np.inf, -np.inf
        self.total = 0.0
        self.finite = self.bad = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        finite = np.isfinite(values)
        kept = values if finite.all() else values[finite]
        self.bad += values.size - kept.size
        if kept.size:
            self.minimum = min(self.minimum, float(kept.min()))
            self.maximum = max(self.maximum, float(kept.max()))
            self.total += float(kept.sum(dtype=np.float64))
            self.finite += kept.size

    def summary(self, array: str, field: FieldSpec) -> FieldRange:
        if not self.finite:
            return FieldRange(array, field, None, None, None, self.bad)
        return FieldRange(array, field, self.minimum, self.maximum, self.total / self.finite, self.bad)


def _places(name: str, block: npt.NDArray[Any], begin: int, fields: Sequence[FieldSpec]) -> list[Place]:
    bad = np.argwhere(~np.isfinite(block))[:PLACES_KEPT]
    return [
        Place(
            array=name,
            sample=begin + int(index[0]),
            frame=int(index[1]),
            cell=tuple(int(place) for place in index[2:-1]),
            field=fields[int(index[-1])].name,
            value=str(float(block[tuple(index)])),
        )
        for index in bad
    ]
