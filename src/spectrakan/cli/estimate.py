"""What a run would take: shapes, parameters, memory and time, measured on one batch in the shape of its data."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from spectrakan.data.generate import generate_lazily
from spectrakan.data.prepare import GENERATED_SAMPLES, Prepared, find, trimmed
from spectrakan.fields import Array, Window
from spectrakan.models import build_model
from spectrakan.training.assemble import training_windows
from spectrakan.training.objective import Objective
from spectrakan.training.resolve import Resolved, planned


def print_estimate(resolved: Resolved) -> None:
    """Build the model for the data's shapes, take two steps on one batch, and extrapolate."""
    config, prepared = resolved.config, unsolved(resolved)
    training, data = config.training, prepared.trajectories
    named = {key: value for key, value in config.model.items() if key not in {"name", "variant"}}
    model = build_model(config.model["name"], prepared.signature(), variant=config.model["variant"], **named)
    windows = training_windows(config, prepared)
    window = windows.gather([index % len(windows) for index in range(training.batch_size)])
    steps = training.epochs * math.ceil(len(windows) / training.batch_size)
    model.fit_windows([window])
    seconds, saved = _one_step(Objective(model, training), window, window.targets.shape[1])
    weights = sum(parameter.numel() for parameter in model.parameters())
    arrays = [array for array in (data.inputs, data.values) if array is not None]
    megabytes = sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays) / 1e6
    print(f"model       {config.model['name']}, {weights} parameters")
    print(f"input       {tuple(window.inputs.shape)} = (batch, history, *space, fields)")
    print(f"target      {tuple(window.targets.shape)} = (batch, unrolled frames, *space, fields)")
    print(f"data        {data.num_samples} samples, {megabytes:.0f} MB of fields, {len(windows)} windows to train on")
    print(f"memory      about {(16 * weights + saved) / 1e6:.0f} MB for weights, optimizer and activations of a step")
    print(
        f"time        {steps} steps of {seconds:.3f} s on the CPU: about {span(steps * seconds)}, without validation"
    )
    print("nothing was written")


def unsolved(resolved: Resolved) -> Prepared:
    """The data of a run as they would be cut: those of its file, else random numbers in their shape."""
    config, problem = resolved.config.data, resolved.problem
    if config.path is not None or problem.equation is None:
        return planned(problem, config, resolved.data or find(problem, config))
    frames = None if config.frames is None else (config.frames - 1) * config.stride_time + 1
    lazy = generate_lazily(problem.name, 1, config.resolution, frames=frames, params=config.params)
    count = config.num_samples or GENERATED_SAMPLES

    def random(array: Array | None) -> Any:
        """Positive numbers, as some fields have to be; all samples are views of one, which takes no memory."""
        if array is None:
            return None
        numbers = np.random.default_rng(0).random(array.shape[1:], dtype=np.float32) + np.float32(0.5)
        return np.broadcast_to(numbers, (count, *numbers.shape))

    blank = replace(lazy, values=random(lazy.values), inputs=random(lazy.inputs), params=random(lazy.params))
    return planned(problem, config, trimmed(blank, replace(config, num_samples=None, resolution=None)))


def _one_step(objective: Objective, window: Window, horizon: int) -> tuple[float, int]:
    """Seconds of a step, and bytes that its graph keeps for the backward pass."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    def step() -> None:
        loss = objective(window, horizon)
        if loss.requires_grad:  # trivial baselines have nothing to train
            loss.backward()

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        step()
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin, sum(kept.values())


def span(seconds: float) -> str:
    """A time in the unit that fits it.

    >>> span(50), span(600), span(86400)
    ('50 s', '10 min', '24.0 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
