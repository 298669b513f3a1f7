"""Long rollouts: whether and when an operator that is fed its own answers leaves all bounds.

A sample blows up at the first frame in which a value is not finite, or lies further from the middle of the data's
range [a, b] of its field than a stated multiple of it:

    |u - (a + b)/2| > limit (b - a)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectrakan.data.progress import Progress
from spectrakan.data.regenerate import regenerate
from spectrakan.data.windows import Windows, WindowSettings
from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import evaluation_mode, predict_frames, require_fit
from spectrakan.evaluation.error_growth import ErrorGrowth
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.plain import as_json
from spectrakan.fields import Trajectories, Window
from spectrakan.models.operator import Operator

FACTOR = 5
"""Horizons of training that are rolled out."""
LIMIT = 10.0
"""Multiple of the data's range beyond which a value has blown up."""


@dataclass(frozen=True)
class Range:
    """Middle and width of what each field takes in the data, `(channel,)`."""

    middle: Tensor
    width: Tensor

    def broken(self, frames: Tensor, limit: float) -> tuple[Tensor, Tensor]:
        """Which frames `(B, T, *space, C)` are not finite, and which leave the bounds: `(B, T)` each."""
        values = frames.to(torch.float64)
        finite = values.isfinite().flatten(2).all(-1)
        beyond = ((values - self.middle).abs() > limit * self.width).flatten(2).any(-1)
        return ~finite, beyond

    def by_name(self, trajectories: Trajectories) -> dict[str, list[float]]:
        """Lowest and highest value of each field."""
        ends = torch.stack([self.middle - self.width / 2, self.middle + self.width / 2], dim=-1)
        return {spec.name: row for spec, row in zip(trajectories.fields, ends.tolist(), strict=True)}


@dataclass(frozen=True)
class BlowUp:
    """Where a rollout ended."""

    frame: int
    """Predicted frame, counted from 1."""
    kind: str
    """`not finite` or `out of range`."""


def stability(
    model: Operator,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    factor: int = FACTOR,
    limit: float = LIMIT,
    samples: Sequence[int] | None = None,
    batch_size: int = 16,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Roll out `factor` times the horizon of training and say which samples blow up, when, and how errors grow.

    `horizon` is that of training, by default the task's. Generated samples are solved on for as long, so that errors
    are known to the end; of others the stored frames are compared, as far as they go. The answer has `blow_ups`
    (their number), one entry a sample under `samples` (`blow_up_frame` counts predicted frames from 1, None if there
    was none; `relative_l2` after 1, 2, .. horizons), and by frame the `median_relative_l2` and `largest_relative_l2`
    of the samples.
    """
    facts = model.signature
    if not facts.evolves or factor < 1 or not limit > 0.5:
        raise ConfigError(
            "stability is asked of operators in time, with a factor of at least 1 and a limit above 0.5, got "
            f"{'one in time' if facts.evolves else 'a steady one'}, factor {factor} and limit {limit}"
        )
    chosen = list(range(trajectories.num_samples)) if samples is None else list(samples)
    if not chosen:
        raise ConfigError("no samples to roll out; name some")
    base = scored_frames(trajectories, facts.history, horizon).horizon
    bounds = data_range(trajectories, chosen)
    data = _long_enough(trajectories, facts.history + factor * base)
    growth = ErrorGrowth([spec.name for spec in data.fields], data.grid)
    ends: list[BlowUp | None] = []
    for window in _windows(model, data, chosen, factor * base, batch_size):
        ends += _follow(model, window, (base, factor * base), bounds, limit, growth)
        if progress is not None:
            progress(len(ends), len(chosen))
    errors = growth.sample_errors()
    times = _times(data, facts.history, factor * base)
    return as_json(
        task=trajectories.task,
        model=model.name,
        resolution=trajectories.grid.shape,
        num_samples=len(chosen),
        training_horizon=base,
        factor=factor,
        horizon=factor * base,
        limit=limit,
        range=bounds.by_name(data),
        blow_ups=sum(end is not None for end in ends),
        times=times,
        frames_with_truth=errors.shape[1],
        median_relative_l2=_worst_last(errors).median(0).values,
        largest_relative_l2=_worst_last(errors).amax(0),
        samples=[
            _of_sample(sample, end, times) | {"relative_l2": each[base - 1 :: base]}
            for sample, end, each in zip(chosen, ends, errors, strict=True)
        ],
    )


def _of_sample(sample: int, end: BlowUp | None, times: Sequence[float]) -> dict[str, Any]:
    return {
        "sample": sample,
        "blow_up_frame": None if end is None else end.frame,
        "blow_up_time": None if end is None else times[end.frame - 1],
        "kind": None if end is None else end.kind,
    }


def data_range(trajectories: Trajectories, samples: Sequence[int]) -> Range:
    """What the fields of some samples take at all stored frames, read one sample at a time."""
    low = np.full(len(trajectories.fields), np.inf)
    high = -low
    for sample in samples:
        values = np.asarray(trajectories.values[sample], dtype=np.float64).reshape(-1, len(low))
        low, high = np.minimum(low, values.min(0)), np.maximum(high, values.max(0))
    width = torch.from_numpy(high - low)
    # A field that is constant in the data has no range of its own; its size stands in.
    size = torch.from_numpy(np.maximum(np.abs(low), np.abs(high))).clamp_min(1e-12)
    return Range(torch.from_numpy((low + high) / 2), torch.where(width > 0, width, size))


def _long_enough(trajectories: Trajectories, frames: int) -> Trajectories:
    if len(trajectories.times) >= frames or not trajectories.origin:
        return trajectories
    return regenerate(trajectories, frames=frames)


def _windows(
    model: Operator, data: Trajectories, samples: Sequence[int], frames: int, batch_size: int
) -> Iterator[Window]:
    """First windows in batches, with as many true frames as there are; the model is in evaluation mode meanwhile."""
    history = model.signature.history
    known = min(frames, len(data.times) - history)
    windows = Windows(data, samples, WindowSettings(history=history, horizon=known, starts="first"))
    require_fit(model.signature, windows.signature())
    with evaluation_mode(model):
        for first in range(0, len(samples), batch_size):
            yield windows.gather(range(first, min(first + batch_size, len(samples))))


def _follow(
    model: Operator, window: Window, span: tuple[int, int], bounds: Range, limit: float, growth: ErrorGrowth
) -> list[BlowUp | None]:
    """Roll a batch out horizon by horizon; frames without a truth are looked at and dropped."""
    known = window.targets.shape[1]
    kept: list[Tensor] = []
    unfit: list[Tensor] = []
    beyond: list[Tensor] = []
    done = 0
    for frames in _stretches(model, window, *span):
        lost, far = bounds.broken(frames, limit)
        unfit.append(lost)
        beyond.append(far)
        kept.append(frames[:, : max(0, known - done)])
        done += frames.shape[1]
    growth.add(torch.cat(kept, dim=1), window.targets)
    return [_first(lost, far) for lost, far in zip(torch.cat(unfit, 1), torch.cat(beyond, 1), strict=True)]


def _stretches(model: Operator, window: Window, horizon: int, total: int) -> Iterator[Tensor]:
    """`total` frames in pieces of `horizon`, each going on from the last frames of the one before."""
    inputs = window.inputs
    for first in range(0, total, horizon):
        frames = predict_frames(model, inputs, min(horizon, total - first), window.params, window.grid)
        yield frames
        inputs = torch.cat([inputs.to(frames.dtype), frames], dim=1)[:, -inputs.shape[1] :]


def _first(lost: Tensor, far: Tensor) -> BlowUp | None:
    """The first broken frame of a sample, and what is wrong with it."""
    broken = (lost | far).nonzero().flatten()
    if not len(broken):
        return None
    place = int(broken[0])
    return BlowUp(place + 1, "not finite" if bool(lost[place]) else "out of range")


def _worst_last(errors: Tensor) -> Tensor:
    """NaN as infinity, so that a broken sample is the worst one rather than none."""
    return errors.nan_to_num(nan=math.inf, posinf=math.inf)


def _times(data: Trajectories, history: int, frames: int) -> list[float]:
    """Times of the predicted frames, at the last step of the data beyond their end."""
    ahead = [float(time) for time in data.times[history : history + frames]]
    last = ahead[-1] if ahead else float(data.times[-1])
    step = float(data.times[-1] - data.times[-2]) if len(data.times) > 1 else 1.0
    return ahead + [last + step * number for number in range(1, frames - len(ahead) + 1)]
