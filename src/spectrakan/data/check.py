"""Health of a set: layout, ranges, bad numbers, copies, leakage across a split, error of the equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spectrakan.data.duplicates import duplicate_groups
from spectrakan.data.equation_check import EquationCheck, check_equation
from spectrakan.data.progress import Progress
from spectrakan.data.split import PARTS, Split
from spectrakan.data.survey import FieldRange, Place, Survey, survey
from spectrakan.errors import ConfigError
from spectrakan.fields import FieldSpec, Trajectories


@dataclass(frozen=True)
class Leakage:
    """Samples of the later parts of a split that have an exact copy in its training part."""

    split: str
    tested: int
    copied: tuple[int, ...]


@dataclass(frozen=True)
class Health:
    """What `check_dataset` found; `problems` make training fail or a score mean nothing."""

    layout: dict[str, Any]
    ranges: tuple[FieldRange, ...]
    bad_numbers: int
    bad_places: tuple[Place, ...]
    copies: tuple[tuple[int, ...], ...]
    """Groups of two or more equal trajectories."""
    distinct: int
    leakage: Leakage
    equation: EquationCheck
    problems: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def check_dataset(trajectories: Trajectories, split: Split | None = None, progress: Progress | None = None) -> Health:
    """Read a whole set and tell what is wrong with it.

    Without `split`, leakage is reported for the customary one, in which the first tenth of the samples tests
    and the rest trains.
    """
    surveys = [survey("values", trajectories.values, trajectories.fields, progress)]
    if trajectories.inputs is not None:
        surveys.append(survey("inputs", trajectories.inputs, trajectories.input_fields))
    if trajectories.params is not None:
        names = tuple(FieldSpec(name) for name in trajectories.param_names)
        surveys.append(survey("params", trajectories.params[:, None], names))
    groups = duplicate_groups(trajectories)
    leakage = find_leakage(groups, split)
    ranges = tuple(entry for part in surveys for entry in part.ranges)
    bad = sum(entry.bad_count for entry in ranges)
    equation = check_equation(trajectories)
    return Health(
        layout=_layout(trajectories),
        ranges=ranges,
        bad_numbers=bad,
        bad_places=tuple(place for part in surveys for place in part.places),
        copies=tuple(group for group in groups if len(group) > 1),
        distinct=len(groups),
        leakage=leakage,
        equation=equation,
        problems=_problems(surveys, bad, leakage if split is not None else None),
        warnings=_warnings(trajectories, ranges, leakage, equation),
    )


def find_leakage(groups: Sequence[Sequence[int]], split: Split | None = None) -> Leakage:
    """Later samples with a copy in the training part; without a split, of the first tenth in the rest."""
    total = sum(len(group) for group in groups)
    if split is None:
        train, later = set(range(-(-total // 10), total)), set(range(-(-total // 10)))
    else:
        train = set(split.train)
        later = {index for name in PARTS if name != "train" for index in split.part(name)}
        if later | train and max(later | train) >= total:
            raise ConfigError(
                f"the split names sample {max(later | train)}, the set ends at {total - 1}; "
                "it belongs to another file"
            )
    copied = sorted(index for group in groups if not train.isdisjoint(group) for index in group if index in later)
    name = "first tenth tests, rest trains" if split is None else "as recorded"
    return Leakage(split=name, tested=len(later), copied=tuple(copied))


def _layout(trajectories: Trajectories) -> dict[str, Any]:
    grid, times = trajectories.grid, np.asarray(trajectories.times)
    steps = np.diff(times)
    return {
        "task": trajectories.task,
        "samples": trajectories.num_samples,
        "frames": len(times),
        "space": list(grid.shape),
        "bounds": [list(ends) for ends in grid.bounds],
        "boundary": list(grid.boundary),
        "equal_cells": grid.is_uniform(),
        "times": [float(times[0]), float(times[-1])],
        "equal_steps": bool(len(steps) < 2 or np.allclose(steps, steps[0], rtol=1e-4)),
        "steady": trajectories.steady,
        "dtype": str(trajectories.values.dtype),
        "gigabytes": float(np.prod(trajectories.values.shape)) * trajectories.values.dtype.itemsize / 1e9,
        "in_memory": isinstance(trajectories.values, np.ndarray),
        "params": list(trajectories.param_names),
        "constants": dict(trajectories.constants),
    }


def _problems(surveys: Sequence[Survey], bad: int, leakage: Leakage | None) -> tuple[str, ...]:
    problems = []
    if bad:
        first = next(place for part in surveys for place in part.places)
        problems.append(f"{bad} numbers are NaN or infinite, the first is {first}")
    if leakage is not None and leakage.copied:
        problems.append(
            f"{len(leakage.copied)} of {leakage.tested} samples outside the training part are copies of "
            "training samples; split the set again"
        )
    return tuple(problems)


def _warnings(
    trajectories: Trajectories, ranges: Sequence[FieldRange], leakage: Leakage, equation: EquationCheck
) -> tuple[str, ...]:
    warnings = [f"field '{entry.field.name}' is {entry.minimum:g} everywhere" for entry in ranges if entry.constant]
    warnings += [
        f"field '{entry.field.name}' should be positive but reaches {entry.minimum:g}"
        for entry in ranges
        if entry.field.positive and entry.minimum is not None and entry.minimum <= 0
    ]
    if not bool((np.diff(trajectories.times) > 0).all()):
        warnings.append("times do not increase")
    if leakage.copied and leakage.split != "as recorded":
        warnings.append(
            f"with the customary split ({leakage.split}) {len(leakage.copied)} of {leakage.tested} test "
            "samples are copies of training samples; spectrakan's own split keeps copies together"
        )
    if equation.unexplained is not None and equation.unexplained > 0.25:
        warnings.append(
            f"the data do not follow their equation: the task's solver misses {equation.unexplained:.0%} of "
            f"the {'solution' if trajectories.steady else 'change between frames'}"
        )
    return tuple(warnings)
