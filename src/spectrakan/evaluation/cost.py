"""What a rollout costs: time and memory of one batch on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from spectrakan.data.windows import Windows, WindowSettings
from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import evaluation_mode, predict_frames, require_fit
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.live_memory import peak_bytes
from spectrakan.evaluation.plain import as_json
from spectrakan.evaluation.timing import interleaved
from spectrakan.fields import Trajectories, Window
from spectrakan.models.operator import Operator

SAMPLES = 8
"""Samples that are rolled out as one batch where none are named."""
ROUNDS = 5


def rollout_cost(
    model: Operator,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    samples: Sequence[int] | None = None,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Seconds and memory of a rollout of `samples` (the first 8 unless named) as one batch.

    Seconds are on the clock, the median of `rounds` after one to warm up; those per frame are per sample and frame.
    `peak_memory_mb` is of tensors that the rollout makes, its answer included; weights are in `weights_mb`.
    """
    if rounds < 1:
        raise ConfigError(f"at least one round is needed, got {rounds}")
    batch = first_windows(model, trajectories, samples, horizon)
    with evaluation_mode(model):
        run = rollout_of(model, batch)
        seconds = float(interleaved({"model": run}, rounds)["model"].median())
        described = cost_of(model, run, seconds, batch)
    return as_json(
        task=trajectories.task,
        model=model.name,
        resolution=trajectories.grid.shape,
        num_samples=batch.inputs.shape[0],
        horizon=batch.targets.shape[1],
        rounds=rounds,
        **machine(model),
        **described,
    )


def first_windows(
    model: Operator, trajectories: Trajectories, samples: Sequence[int] | None, horizon: int | None
) -> Window:
    """The first windows of some samples as one batch."""
    chosen = range(min(SAMPLES, trajectories.num_samples)) if samples is None else samples
    frames = scored_frames(trajectories, model.signature.history, horizon).horizon
    choices = WindowSettings(history=model.signature.history, horizon=frames, starts="first")
    windows = Windows(trajectories, list(chosen), choices)
    require_fit(model.signature, windows.signature())
    return windows.gather(range(len(windows)))


def rollout_of(model: Operator, batch: Window) -> Callable[[], Tensor]:
    """The rollout of a batch, ready to be run; its answer comes to the CPU, so a GPU is waited for."""
    horizon = batch.targets.shape[1]
    return lambda: predict_frames(model, batch.inputs, horizon, batch.params, batch.grid)


def cost_of(model: Operator, run: Callable[[], Tensor], seconds: float, batch: Window) -> dict[str, float]:
    """Seconds of a rollout and of a frame of it, and megabytes."""
    weights = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    return {
        "seconds": seconds,
        "seconds_per_frame": seconds / (batch.targets.shape[0] * batch.targets.shape[1]),
        "peak_memory_mb": peak_bytes(run, device_of(model)) / 1e6,
        "weights_mb": weights / 1e6,
    }


def machine(model: Operator) -> dict[str, Any]:
    """Where times were taken: device, threads, and type of the model's numbers."""
    like = next(iter(model.state_dict().values()))
    return {
        "device": like.device.type,
        "threads": torch.get_num_threads(),
        "precision": str(like.dtype).removeprefix("torch."),
    }


def device_of(model: Operator) -> torch.device:
    """Where a model computes."""
    like: Tensor = next(iter(model.state_dict().values()))
    return like.device
