"""The solver at the error of a model: between the grids on which it was timed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SolverPoint:
    """The solver on one grid."""

    resolution: tuple[int, ...]
    error: float
    """Relative L2 against the solution on the finest grid; infinite where the solver fails."""
    seconds: float


def equal_error(points: Sequence[SolverPoint], error: float, seconds: float) -> dict[str, Any] | None:
    """The solver at a model's `error`, and its time over the model's `seconds`; `points` go from coarse to fine.

    `resolution` is the coarsest grid that errs no more than the model; `interpolated` lies between it and the next
    coarser one, by a power law of time against error (by a line to a grid without error).
    `bound` says `at most` where even the coarsest grid errs no more than the model: a still coarser one might do.
    None where the model's error is not finite.

    >>> points = [SolverPoint((16,), 0.4, 1.0), SolverPoint((32,), 0.1, 4.0), SolverPoint((64,), 0.0, 16.0)]
    >>> found = equal_error(points, 0.2, 2.0)
    >>> found["resolution"], found["speed_up"], round(found["interpolated"]["speed_up"], 6)
    ((32,), 2.0, 1.0)
    """
    if not math.isfinite(error):
        return None
    place = next((at for at, point in enumerate(points) if point.error <= error), len(points) - 1)
    found = points[place]
    between = None
    if place and math.isfinite(points[place - 1].error):
        spent = _interpolated(points[place - 1], found, error)
        between = {"seconds": spent, "speed_up": spent / seconds}
    return {
        "resolution": found.resolution,
        "error": found.error,
        "seconds": found.seconds,
        "speed_up": found.seconds / seconds,
        "bound": "at most" if place == 0 else None,
        "interpolated": between,
    }


def _interpolated(coarse: SolverPoint, fine: SolverPoint, error: float) -> float:
    """Seconds at `error` between two grids: a power law between positive errors, a line where one is zero."""
    share = (coarse.error - error) / (coarse.error - fine.error) if coarse.error > fine.error else 1.0
    if min(fine.error, coarse.seconds, fine.seconds, error) > 0 and coarse.error > fine.error:
        share = math.log(coarse.error / error) / math.log(coarse.error / fine.error)
        return float(coarse.seconds * (fine.seconds / coarse.seconds) ** share)
    return coarse.seconds + share * (fine.seconds - coarse.seconds)
