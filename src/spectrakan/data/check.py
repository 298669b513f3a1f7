"""Health of a set: layout, ranges, the positions of NaN and infinities, copies, leakage across a split."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.formats.plain import FEWEST_CELLS
from spectrakan.data.split import PARTS, Split, SplitSettings, duplicate_groups, split_frames
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.fields import Array, FieldSpec, Progress, Trajectories, blocks
from spectrakan.fields.display import facts

FEWEST_SAMPLES = 3
"""Distinct trajectories that a split into training, validation and test needs."""
FEWEST_STEPS = 16
"""Steps of float32 that a field must vary by to be learned in float32."""
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


@dataclass(frozen=True)
class Health:
    """What `check_dataset` found; `problems` make training fail or scores meaningless."""

    facts: dict[str, str]
    samples: int
    ranges: tuple[FieldRange, ...]
    bad_numbers: int
    bad_places: tuple[str, ...]
    copies: tuple[tuple[int, ...], ...]
    """Groups of two or more equal trajectories."""
    distinct: int
    leaked: tuple[int, ...] | None
    """Samples outside the training part of a given split that are copies of training samples."""
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def check_dataset(trajectories: Trajectories, split: Split | None = None, progress: Progress | None = None) -> Health:
    """Read a whole set and report its problems: everything that training would refuse later, and copies.

    With `split`, copies of training samples in its other parts are a problem, unless it is one in time.
    """
    ranges, bad_places = survey(trajectories, progress)
    groups = duplicate_groups(trajectories)
    leaked = None if split is None or split.frames else find_leakage(groups, split)  # in time, parts share samples
    bad = sum(entry.bad_count for entry in ranges)
    problems = [f"{bad} numbers are NaN or infinite, the first is {bad_places[0]}"] if bad else []
    problems += _sizes(trajectories, len(groups) if split is None else None)
    if leaked:
        problems.append(
            f"{len(leaked)} samples outside the training part are copies of training samples; split the set again"
        )
    return Health(
        facts=facts(trajectories),
        samples=trajectories.num_samples,
        ranges=ranges,
        bad_numbers=bad,
        bad_places=bad_places,
        copies=tuple(group for group in groups if len(group) > 1),
        distinct=len(groups),
        leaked=leaked,
        problems=tuple(problems),
        warnings=tuple(_warnings(trajectories, ranges, len(groups))),
    )


def find_leakage(groups: Sequence[Sequence[int]], split: Split) -> tuple[int, ...]:
    """Samples of the later parts with an exact copy in the training part."""
    total, train = sum(len(group) for group in groups), set(split.train)
    later = {index for name in PARTS if name != "train" for index in split.part(name)}
    if (last := max(later | train)) >= total:
        raise ConfigError(f"the split names sample {last}, the set ends at {total - 1}; it belongs to another file")
    found = (index for group in groups if not train.isdisjoint(group) for index in group if index in later)
    return tuple(sorted(found))


def _sizes(trajectories: Trajectories, distinct: int | None) -> list[str]:
    """What makes a set too small to train on; `distinct` is None where a split is given."""
    problems = []
    if distinct is not None and distinct < FEWEST_SAMPLES and not _splits_in_time(trajectories):
        problems.append(
            f"{distinct} distinct trajectories cannot be split into training, validation and test; "
            f"at least {FEWEST_SAMPLES} are needed, or more frames for a split in time"
        )
    if not trajectories.steady and len(trajectories.times) < 2:
        problems.append("one frame and no separate inputs: a problem in time needs at least 2 frames")
    if min(trajectories.grid.shape) < FEWEST_CELLS:
        cells = " x ".join(str(size) for size in trajectories.grid.shape)
        problems.append(f"{cells} cells: every axis needs at least {FEWEST_CELLS}")
    return problems


def _splits_in_time(trajectories: Trajectories) -> bool:
    """Whether the frames suffice for a split in time with the default shares."""
    if trajectories.steady:
        return False
    try:
        split_frames(trajectories.num_samples, len(trajectories.times), SplitSettings(by="time"))
    except ConfigError:
        return False
    return True


def _warnings(trajectories: Trajectories, ranges: Sequence[FieldRange], distinct: int) -> Iterator[str]:
    if len(trajectories) < FEWEST_SAMPLES and _splits_in_time(trajectories):
        yield f"{len(trajectories)} trajectories: only a split in time (data.split.by=time) is possible"
    for entry in ranges:
        if entry.minimum is not None and entry.minimum == entry.maximum:
            yield f"field '{entry.field.name}' is {entry.minimum:g} everywhere"
        if entry.minimum is not None and entry.minimum <= 0 and entry.field.positive:
            yield f"field '{entry.field.name}' should be positive but reaches {entry.minimum:g}"
    if copied := len(trajectories) - distinct:
        yield f"{copied} trajectories are copies of others; spectrakan's own split keeps copies together"


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


def require_resolved(trajectories: Trajectories) -> None:
    """Refuse fields in float64 that are nearly constant in float32; their first samples are looked at."""
    for _, values, fields in _arrays(trajectories):
        if values.dtype.itemsize > 4 and values.shape[0]:
            numbers = next(blocks(values))[1].reshape(-1, len(fields))
            for field, low, high in zip(fields, numbers.min(0), numbers.max(0), strict=True):
                step = float(np.spacing(np.float32(max(abs(low), abs(high)))))
                # Less than a millionth of a step is rounding of float64: a constant.
                if 1e-6 * step < high - low < FEWEST_STEPS * step:
                    raise ConfigError(
                        f"'{field.name}' varies by {high - low:.3g} about {high:.6g}, where numbers of float32 are "
                        f"{step:.2g} apart; set runtime.precision=float64, or subtract a constant from the field"
                    )


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
        f"{float(block[sample, frame, *cell, channel])} in {name}: sample {begin + sample}, "
        + (f"frame {frame}, cell ({', '.join(map(str, cell))}), " if cell else "")
        + fields[channel].name
        for sample, frame, *cell, channel in found
    ]
