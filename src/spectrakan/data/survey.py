"""Passes over stored fields: their ranges, the positions of NaN and infinities, and equal trajectories."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.errors import DataFormatError
from spectrakan.fields import Array, FieldSpec, Trajectories, blocks

Progress = Callable[[int, int], None]
"""Called with (done, total) whenever a piece of long work is done; both count samples, or bytes in a download."""

LISTED = 10
"""Bad numbers (NaN, infinities) that are listed with their position; all of them are counted."""


@dataclass(frozen=True)
class FieldRange:
    """Range and mean of the finite numbers of a field; all None where there are none."""

    array: str
    field: FieldSpec
    minimum: float | None
    maximum: float | None
    mean: float | None
    bad_count: int


def survey(
    trajectories: Trajectories, progress: Progress | None = None
) -> tuple[tuple[FieldRange, ...], tuple[str, ...]]:
    """Ranges of all fields, inputs and parameters, and the first bad numbers; a set is read once, in pieces."""
    ranges: list[FieldRange] = []
    bad: list[str] = []
    for name, values, fields in _arrays(trajectories):
        low, high = np.full(len(fields), np.inf), np.full(len(fields), -np.inf)
        total, finite = np.zeros(len(fields)), np.zeros(len(fields), dtype=np.int64)
        samples = int(values.shape[0])
        for begin, block in blocks(values):
            numbers = block.reshape(-1, len(fields)).astype(np.float64)
            kept = np.isfinite(numbers)
            low = np.minimum(low, numbers.min(axis=0, where=kept, initial=np.inf))
            high = np.maximum(high, numbers.max(axis=0, where=kept, initial=-np.inf))
            total, finite = total + numbers.sum(axis=0, where=kept), finite + kept.sum(axis=0)
            bad += _bad_numbers(name, block, begin, fields)
            if progress is not None and name == "values":
                progress(begin + len(block), samples)
        count = int(np.prod(values.shape[:-1]))
        numbers_of = zip(fields, low.tolist(), high.tolist(), total.tolist(), finite.tolist(), strict=True)
        for field, least, most, added, number in numbers_of:
            known = (least, most, added / number) if number else (None, None, None)
            ranges.append(FieldRange(name, field, known[0], known[1], known[2], count - number))
    return tuple(ranges), tuple(bad[:LISTED])


def require_finite(trajectories: Trajectories, source: str) -> None:
    """Refuse a set with a NaN or an infinity in fields or parameters; the error names the first one."""
    for name, values, fields in _arrays(trajectories):
        for begin, block in blocks(values):
            if bad := _bad_numbers(name, block, begin, fields):
                raise DataFormatError(
                    f"'{source}' holds NaN or infinite numbers, the first is {bad[0]}; `spectrakan check` lists more"
                )


def duplicate_groups(trajectories: Trajectories) -> tuple[tuple[int, ...], ...]:
    """All samples, in groups of equal inputs, values and parameters; a unique sample is a group of one.

    Groups are in order of their first member. Two passes keep a large file cheap: the first compares what a
    trajectory starts from (its input or first frame, and its parameters), and only samples that agree there are
    read whole.
    """
    source = trajectories.values if trajectories.inputs is None else trajectories.inputs
    starts: dict[Hashable, list[int]] = defaultdict(list)
    for sample in range(trajectories.num_samples):
        params = b"" if trajectories.params is None else _digest(trajectories.params[sample])
        starts[_digest(source[sample, 0]), params].append(sample)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for start, samples in starts.items():
        for sample in samples:
            whole = _digest(trajectories.values[sample]) if len(samples) > 1 else b""
            groups[start, whole].append(sample)
    return tuple(sorted(tuple(group) for group in groups.values()))


def _arrays(trajectories: Trajectories) -> Iterator[tuple[str, Array, Sequence[FieldSpec]]]:
    """All arrays of a set with their fields; parameters count as fields without space."""
    yield "values", trajectories.values, trajectories.fields
    if trajectories.inputs is not None:
        yield "inputs", trajectories.inputs, trajectories.input_fields
    if trajectories.params is not None:
        yield "params", trajectories.params[:, None], tuple(FieldSpec(name) for name in trajectories.param_names)


def _bad_numbers(name: str, block: npt.NDArray[Any], begin: int, fields: Sequence[FieldSpec]) -> list[str]:
    """The first NaN and infinities of a block, each with its position."""
    found = np.argwhere(~np.isfinite(block))[:LISTED].tolist()
    return [
        f"{float(block[sample, frame, *cell, channel])} in {name}: sample {begin + sample}, frame {frame}, "
        f"cell ({', '.join(map(str, cell))}), {fields[channel].name}"
        for sample, frame, *cell, channel in found
    ]


def _digest(values: object) -> bytes:
    plain = np.ascontiguousarray(values)
    # Adding zero makes the two zeros of floating point one.
    return hashlib.sha256((plain + plain.dtype.type(0)).tobytes()).digest()
