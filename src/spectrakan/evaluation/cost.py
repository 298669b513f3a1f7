"""What a rollout costs on this machine."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from torch import nn

from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import Samples, all_or, first_windows, heading, predict_frames
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.operators import as_operator, evaluation_mode, numbers_of
from spectrakan.fields import Trajectories

SAMPLES = 8
"""Samples that are rolled out as one batch where none are named."""
ROUNDS = 5


def rollout_cost(
    model: nn.Module,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    samples: Samples = None,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Seconds of a rollout of `samples` (the first 8 unless named) as one batch.

    Seconds are wall-clock, the median of `rounds` after one to warm up; those per frame are per sample and frame.
    `weights_mb` is the memory of the weights.
    """
    if rounds < 1:
        raise ConfigError(f"at least one round is needed, got {rounds}")
    operator, chosen = as_operator(model, trajectories), all_or(samples, trajectories, SAMPLES)
    frames = scored_frames(trajectories, operator.signature.history, horizon).horizon
    batch = first_windows(operator, trajectories, chosen, frames).gather(range(len(chosen)))

    device, dtype = numbers_of(operator)
    with evaluation_mode(operator):
        spent = []
        for _ in range(rounds + 1):
            begin = time.perf_counter()
            predict_frames(operator, batch.inputs, frames, batch.params, batch.grid)
            spent.append(time.perf_counter() - begin)
    seconds = statistics.median(spent[1:])
    weights = sum(tensor.numel() * tensor.element_size() for tensor in operator.state_dict().values())
    return heading(operator, trajectories, len(chosen), frames) | {
        "rounds": rounds,
        "device": device.type,
        "threads": torch.get_num_threads(),
        "precision": str(dtype).removeprefix("torch."),
        "seconds": seconds,
        "seconds_per_frame": seconds / (len(chosen) * frames),
        "weights_mb": weights / 1e6,
    }
