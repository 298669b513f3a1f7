"""Long rollouts: whether and when an operator that is fed its own output leaves all bounds.

A sample blows up at the first frame in which a value is not finite, or lies further from the middle of the data's
range [a, b] of its field than a given multiple of the range:

    |u - (a + b)/2| > limit (b - a)
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spectrakan.data.regenerate import regenerate
from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import DEFAULT, EvaluationSettings, Samples, all_or, heading, predicted_batches
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.operators import as_operator
from spectrakan.fields import Trajectories
from spectrakan.metrics import relative_error
from spectrakan.runs.record import as_json

FACTOR = 5
"""Horizons of training that are rolled out."""
LIMIT = 10.0
"""Multiple of the data's range beyond which a value has blown up."""


def stability(
    model: nn.Module,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    factor: int = FACTOR,
    limit: float = LIMIT,
    samples: Samples = None,
    settings: EvaluationSettings = DEFAULT,
) -> dict[str, Any]:
    """Roll out `factor` times the horizon of training: which samples blow up, when, and how errors grow.

    `horizon` is that of training, by default the problem's. Generated samples are solved for as long, so that errors
    are known to the end; of others the stored frames are compared, as far as they go. The result has `blow_ups`
    (their number), one entry a sample under `samples` (`blow_up_frame` counts predicted frames from 1, None if there
    is none; `relative_l2` after 1, 2, .. horizons), and by frame the `median_relative_l2` and `largest_relative_l2`
    of the samples.
    """
    check_stability(model, trajectories, factor=factor, limit=limit)
    operator, chosen = as_operator(model, trajectories), all_or(samples, trajectories)
    if not chosen:
        raise ConfigError("no samples to roll out; name some")
    history = operator.signature.history
    base, _ = scored_frames(trajectories, history, horizon)
    total = factor * base
    low, high = data_range(trajectories, chosen)
    longer = bool(trajectories.origin) and len(trajectories.times) < history + total
    data = regenerate(trajectories, frames=history + total) if longer else trajectories
    names = [spec.name for spec in data.fields]
    relative: list[Tensor] = []
    finite: list[Tensor] = []
    inside: list[Tensor] = []
    for window, frames in predicted_batches(operator, data, chosen, total, settings):
        finite.append(frames.isfinite().flatten(2).all(-1))
        # The mean over fields whose truth is not zero; NaN where the prediction is not finite.
        known = window.targets.shape[1]
        mean = relative_error(frames[:, :known], window.targets, data.grid).nanmean(-1)
        relative.append(mean.masked_fill(~finite[-1][:, :known], torch.nan))
        away = (frames.to(torch.float64) - (low + high) / 2).abs()
        inside.append(~(away > limit * (high - low)).flatten(2).any(-1))
    errors, times = torch.cat(relative), predicted_times(data, history, total)
    outcomes: list[dict[str, Any]] = []
    for sample, number, near, each in zip(chosen, torch.cat(finite), torch.cat(inside), errors, strict=True):
        broken = (~(number & near)).nonzero().flatten().tolist()
        found: dict[str, Any] = {"sample": sample, "blow_up_frame": None, "blow_up_time": None, "kind": None}
        if broken:
            kind = "out of range" if bool(number[broken[0]]) else "not finite"
            found |= {"blow_up_frame": broken[0] + 1, "blow_up_time": times[broken[0]], "kind": kind}
        outcomes.append(found | {"relative_l2": each[base - 1 :: base]})
    # NaN as infinity, so that a failed sample is the worst one.
    ranked = errors.nan_to_num(nan=math.inf, posinf=math.inf)
    return as_json(
        heading(operator, trajectories, len(chosen), total)
        | {
            "training_horizon": base,
            "factor": factor,
            "limit": limit,
            "range": dict(zip(names, torch.stack([low, high], dim=-1).tolist(), strict=True)),
            "blow_ups": sum(entry["kind"] is not None for entry in outcomes),
            "times": times,
            "frames_with_truth": errors.shape[1],
            "median_relative_l2": ranked.median(0).values,
            "largest_relative_l2": ranked.amax(0),
            "samples": outcomes,
        }
    )


def check_stability(model: nn.Module, trajectories: Trajectories, *, factor: int = 1, limit: float = 1.0) -> None:
    """Refuse long rollouts of a model that is not fed its own output."""
    evolves = as_operator(model, trajectories).signature.evolves
    if not evolves or factor < 1 or not limit > 0.5:
        raise ConfigError(
            "stability is defined for operators in time, with a factor of at least 1 and a limit above 0.5, got "
            f"{'one in time' if evolves else 'a steady one'}, factor {factor} and limit {limit}"
        )


def data_range(trajectories: Trajectories, samples: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The range [a, b] of each field over all stored frames of some samples, read one sample at a time."""
    low = np.full(len(trajectories.fields), np.inf)
    high = -low
    for sample in samples:
        values = np.asarray(trajectories.values[sample], dtype=np.float64).reshape(-1, len(low))
        low, high = np.minimum(low, values.min(0)), np.maximum(high, values.max(0))
    # A field that is constant in the data has no range; its magnitude is used instead.
    size = np.maximum(np.abs(low), np.finfo(np.float64).tiny) * (low == high) / 2
    return torch.from_numpy(low - size), torch.from_numpy(high + size)


def predicted_times(data: Trajectories, history: int, frames: int) -> list[float]:
    """Times of the predicted frames; beyond the end of the data with their last step."""
    ahead = [float(time) for time in data.times[history : history + frames]]
    last = ahead[-1] if ahead else float(data.times[-1])
    step = float(data.times[-1] - data.times[-2]) if len(data.times) > 1 else 1.0
    return ahead + [last + step * number for number in range(1, frames - len(ahead) + 1)]
