"""Scores of an operator on test trajectories: rolled out from the first window, metric by metric."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from spectrakan.data.problems import find_problem
from spectrakan.data.regenerate import brought_to
from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import (
    DEFAULT,
    EvaluationSettings,
    Samples,
    all_or,
    all_predicted,
    heading,
    predicted_batches,
)
from spectrakan.evaluation.operators import as_operator
from spectrakan.fields import Trajectories
from spectrakan.fields.grid_part import joined, whole_of
from spectrakan.fields.trajectories import require_trajectories
from spectrakan.metrics import MetricAccumulator, anomaly_r2
from spectrakan.models.catalog import MODELS

TIME_TOLERANCE = 1e-6


def evaluate(
    model: nn.Module,
    trajectories: Trajectories,
    resolution: int | None = None,
    horizon: int | None = None,
    *,
    samples: Samples = None,
    history: int | None = None,
    anomalies_from: Sequence[int] | None = None,
    settings: EvaluationSettings = DEFAULT,
) -> dict[str, Any]:
    """Score rollouts from the first window of each trajectory, on the grid of the data or on another.

    `model` is an operator, or any module that is called as `module(x, params=None, grid=None)` in physical units
    and reads `history` frames. `resolution` is cells along the longest axis: generated samples are solved anew on
    that grid, others can only be averaged onto a coarser one. `horizon` is the number of frames to predict, by
    default the problem's; where the problem names times to score, only those count. `samples` restricts to some
    trajectories. With `anomalies_from`, the training samples of a steady problem, `anomaly_r2` is added. With a
    share in `settings` this process scores its part, and every process returns the scores of all. The result has
    `metrics`, `metrics_per_field`, `metrics_per_frame`, `times`, `horizon`, `resolution`, `num_samples`, `task`,
    `model`, and `data`, which says whether fields are as `given`, `solved` or `averaged`.
    """
    require_trajectories(trajectories)
    data, source = brought_to(trajectories, resolution)
    operator = as_operator(model, data, history)
    chosen = all_or(samples, data)
    span, kept = scored_frames(data, operator.signature.history, horizon)
    mine, stream = settings.share.part(len(chosen)), MetricAccumulator(whole_of(data.grid))
    for window, frames in predicted_batches(operator, data, chosen[mine.start : mine.stop], span, settings):
        stream.update(frames[:, kept], window.targets[:, kept])
    result = settings.share.join(stream, whole_of(data.grid)).result()
    first = 0 if data.steady else operator.signature.history
    scores = heading(operator, data, result.num_samples, span) | {
        "times": [float(data.times[first + frame]) for frame in kept],
        "metrics": result.reduced,
        "metrics_per_field": result.by_field([spec.name for spec in data.fields]),
        "metrics_per_frame": {name: [float(value) for value in row] for name, row in result.per_frame.items()},
        "data": source,
    }
    if anomalies_from is not None:
        add_anomaly_scores(scores, operator, data, train=anomalies_from, test=chosen)
    return scores


def check_evaluation(
    model: nn.Module, trajectories: Trajectories, horizon: int | None = None, *, samples: Samples = None
) -> None:
    """Refuse a model, horizon or samples that do not fit the data."""
    operator = as_operator(model, trajectories)
    scored_frames(trajectories, operator.signature.history, horizon)
    count = trajectories.num_samples
    if samples is not None and (not samples or min(samples) < 0 or max(samples) >= count):
        raise ConfigError(f"samples must be some of 0..{count - 1}, got {list(samples)[:5]}")


def require_capability(model: nn.Module, resolution: int, trained_at: int, *, force: bool = False) -> None:
    """Refuse a grid on which this model's weights would be another operator."""
    name = str(getattr(model, "name", type(model).__name__))
    known = MODELS.get(name)
    if resolution == trained_at or force or known is None or known.order is not None:
        return
    raise ConfigError(
        f"{name} cannot be scored zero-shot at {resolution}: it reads {known.reads}, so its weights "
        f"learned at {trained_at} cells are another operator there; train it at {resolution}, choose a model that "
        "`spectrakan models` lists as the same operator on other grids, or run it all the same with force=True "
        "(`--force`)"
    )


def add_anomaly_scores(
    scores: dict[str, Any], model: nn.Module, trajectories: Trajectories, *, train: Sequence[int], test: Sequence[int]
) -> None:
    """Add `anomaly_r2` to `scores`: R² of departures from the mean field of the `train` samples, on the `test` ones.

    For steady problems whose fields are close to their mean, such as pressure, where a relative error means little.
    Each field has its score, and `metrics` their mean.
    """
    if not trajectories.steady or not train or not test:
        raise ConfigError("anomalies need a steady problem with samples to train and to test on")
    mean = sum(np.asarray(trajectories.values[index], dtype=np.float64)[0] for index in train) / len(train)
    pred, truth = all_predicted(model, trajectories, test, 1)
    grid = trajectories.grid
    usual = joined(torch.as_tensor(mean), grid, 0)
    explained = anomaly_r2(pred, truth, usual, whole_of(grid).volumes()).tolist()
    for spec, value in zip(trajectories.fields, explained, strict=True):
        scores["metrics_per_field"][spec.name]["anomaly_r2"] = value
    scores["metrics"]["anomaly_r2"] = sum(explained) / len(explained)


def scored_frames(trajectories: Trajectories, history: int, horizon: int | None = None) -> tuple[int, list[int]]:
    """How many frames to predict: `horizon`, else the problem's; which count: those at its times, else all.

    With a given `horizon` all frames count.
    """
    if trajectories.steady:
        if horizon not in (None, 1):
            raise ConfigError(f"a steady problem has one frame to predict, got horizon {horizon}")
        return 1, [0]
    left = len(trajectories.times) - history
    if left < 1 or (horizon is not None and not 1 <= horizon <= left):
        raise ConfigError(
            f"the trajectories have {len(trajectories.times)} frames, of which {history} are given to the model: "
            + (f"a horizon of 1 to {left} is possible, got {horizon}" if left > 0 else "none is left to predict")
        )
    known = find_problem(trajectories.name)
    if horizon is not None or known is None:
        return horizon or left, list(range(horizon or left))
    span = min(known.horizon, left)
    ahead = trajectories.times[history : history + span]
    counted = [
        frame
        for frame, time in enumerate(ahead)
        if any(abs(time - mark) < TIME_TOLERANCE for mark in known.scored_times)
    ]
    return span, counted or list(range(span))
