"""Scores of an operator on trajectories it has not seen: rolled out from the first window, metric by metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectrakan.data.catalog import TASKS
from spectrakan.data.progress import Progress
from spectrakan.data.regenerate import regenerate
from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import predicted_batches
from spectrakan.evaluation.share import ALONE, Share
from spectrakan.fields import Array, Grid, Trajectories
from spectrakan.metrics import MetricAccumulator
from spectrakan.models.operator import Operator
from spectrakan.numerics.resample import overlap_matrix

TIME_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Scored:
    """Which frames of a trajectory are predicted, and which of them count."""

    horizon: int
    frames: tuple[int, ...]
    """Places of the frames that count among the predicted ones."""


def evaluate(
    model: Operator,
    trajectories: Trajectories,
    resolution: int | None = None,
    horizon: int | None = None,
    *,
    samples: Sequence[int] | None = None,
    batch_size: int = 16,
    convention: str = "exact",
    share: Share = ALONE,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Score rollouts from the first window of each trajectory, on the grid of the data or on another.

    `resolution` is cells along the longest axis: generated samples are solved anew on that grid, others can only
    be averaged onto a coarser one. `horizon` is frames to predict, by default those of the task; where the task
    names times to score, only those count. `samples` restricts to some trajectories. With a `share` this process
    scores its part of them, and all processes get the scores of all. The answer has `metrics`,
    `metrics_per_field`, `metrics_per_frame`, `times`, `horizon`, `resolution`, `num_samples`, `task`, `model`, and
    `data`, which says whether fields are as `given`, `solved` or `averaged`.
    """
    data, source = brought_to(trajectories, resolution)
    chosen = list(range(data.num_samples)) if samples is None else list(samples)
    scored = scored_frames(data, model.signature.history, horizon)
    # Scores of PDEBench's convention depend on its batches, so a batch is never cut between processes.
    mine = share.part(len(chosen), batch_size if convention == "pdebench" else 1)
    part = chosen[mine.start : mine.stop]
    scores = accumulate(model, data, part, scored, batch_size=batch_size, convention=convention, progress=progress)
    return summary(model, data, scored, share.join(scores, data.grid)) | {"data": source}


def accumulate(
    model: Operator,
    trajectories: Trajectories,
    samples: Sequence[int],
    scored: Scored,
    *,
    batch_size: int = 16,
    convention: str = "exact",
    progress: Progress | None = None,
) -> MetricAccumulator:
    """Scores of some samples as a stream, so that processes can share them out and merge."""
    accumulator = MetricAccumulator(
        convention, batch_size=batch_size if convention == "pdebench" else None, grid=trajectories.grid
    )
    kept = list(scored.frames)
    for batch in predicted_batches(
        model, trajectories, samples, scored.horizon, batch_size=batch_size, progress=progress
    ):
        accumulator.update(batch.frames[:, kept], batch.window.targets[:, kept])
    return accumulator


def summary(model: Operator, trajectories: Trajectories, scored: Scored, scores: MetricAccumulator) -> dict[str, Any]:
    """What was scored, and how it came out, as plain values."""
    result = scores.result()
    first = 0 if trajectories.steady else model.signature.history
    return {
        "task": trajectories.task,
        "model": model.name,
        "resolution": list(trajectories.grid.shape),
        "num_samples": result.num_samples,
        "horizon": scored.horizon,
        "times": [float(trajectories.times[first + frame]) for frame in scored.frames],
        "metrics": result.reduced,
        "metrics_per_field": result.by_field([spec.name for spec in trajectories.fields]),
        "metrics_per_frame": {name: [float(value) for value in row] for name, row in result.per_frame.items()},
    }


def scored_frames(trajectories: Trajectories, history: int, horizon: int | None = None) -> Scored:
    """Frames to predict: as asked, else the task's; frames that count: at the task's times, else all.

    A horizon that was asked for counts in full.
    """
    if trajectories.steady:
        if horizon not in (None, 1):
            raise ConfigError(f"a steady task has one frame to predict, got horizon {horizon}")
        return Scored(1, (0,))
    left = len(trajectories.times) - history
    if left < 1 or (horizon is not None and not 1 <= horizon <= left):
        raise ConfigError(
            f"the trajectories have {len(trajectories.times)} frames, of which {history} are seen: "
            f"a horizon of 1 to {left} is possible, got {horizon}"
        )
    known = TASKS.get(trajectories.task)
    if horizon is not None or known is None:
        return Scored(horizon or left, tuple(range(horizon or left)))
    span = min(known.horizon, left)
    ahead = trajectories.times[history : history + span]
    counted = [
        place
        for place, time in enumerate(ahead)
        if any(abs(time - mark) < TIME_TOLERANCE for mark in known.scored_times)
    ]
    return Scored(span, tuple(counted) if counted else tuple(range(span)))


def brought_to(trajectories: Trajectories, resolution: int | None) -> tuple[Trajectories, str]:
    """The samples on `resolution` cells along the longest axis, and how they got there."""
    if resolution is None or resolution == max(trajectories.grid.shape):
        return trajectories, "given"
    if trajectories.origin:
        return regenerate(trajectories, resolution=resolution), "solved"
    return coarsen(trajectories, resolution), "averaged"


def coarsen(trajectories: Trajectories, resolution: int) -> Trajectories:
    """Fields averaged onto `resolution` equal cells per axis (the longest one, others in proportion)."""
    old = trajectories.grid
    longest = max(old.shape)
    shape = tuple(round(size * resolution / longest) for size in old.shape)
    if shape == old.shape:
        return trajectories
    if resolution > longest or min(shape) < 1:
        raise ConfigError(
            f"the data have {' x '.join(map(str, old.shape))} cells and cannot be brought to {resolution}: "
            "averages exist on coarser grids only, and these samples do not say how they were generated; evaluate on "
            f"a set solved there (`spectrakan generate TASK --resolution {resolution}`)"
        )
    if not old.is_uniform():
        raise ConfigError("only fields on equal cells can be brought to another resolution")
    new = Grid.uniform(shape, old.bounds, old.boundary)
    maps = [overlap_matrix(fine, coarse).numpy() for fine, coarse in zip(old.edges, new.edges, strict=True)]

    def average(array: Array) -> Array:
        values = np.asarray(array)
        for axis, matrix in enumerate(maps, start=2):
            values = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(values.astype(array.dtype))

    inputs = None if trajectories.inputs is None else average(trajectories.inputs)
    return replace(trajectories, values=average(trajectories.values), inputs=inputs, grid=new, origin={})
