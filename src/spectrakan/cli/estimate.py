"""What a run would take: shapes, parameters, memory and time, measured on one batch of random numbers."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import torch

from spectrakan.data.generate import generate_lazily
from spectrakan.data.prepare import GENERATED_SAMPLES, NO_TEST, find, trimmed
from spectrakan.data.windows import signature
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models import build_model
from spectrakan.training.resolve import Resolved
from spectrakan.training.unroll import Objective


@dataclass(frozen=True)
class DataSize:
    """Size of the data that a run would learn from."""

    samples: int
    frames: int
    cells: tuple[int, ...]
    signature: OperatorSignature
    megabytes: float


def print_estimate(resolved: Resolved) -> None:
    """Build the model for the data's shapes, take two steps on random numbers, and extrapolate."""
    config, data = resolved.config, data_size(resolved)
    training, shape = config.training, data.signature
    named = {key: value for key, value in config.model.items() if key not in {"name", "variant"}}
    model = build_model(config.model["name"], shape, variant=config.model["variant"], **named)
    horizon = 1 if shape.steady else training.horizon
    window = random_window(shape, data.cells, training.batch_size, horizon)
    windows = windows_to_train(resolved, data, horizon)
    steps = training.epochs * math.ceil(windows / training.batch_size)
    model.fit_windows([window])
    seconds, saved = _one_step(Objective(model, training), window, horizon)
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"model       {config.model['name']}, {weights} parameters")
    print(f"input       {tuple(window.inputs.shape)} = (batch, history, *space, fields)")
    print(f"target      {tuple(window.targets.shape)} = (batch, unrolled frames, *space, fields)")
    print(f"data        {data.samples} samples, {data.megabytes:.0f} MB of fields, {windows} windows to train on")
    print(f"memory      about {(16 * weights + saved) / 1e6:.0f} MB for weights, optimizer and activations of a step")
    print(
        f"time        {steps} steps of {seconds:.3f} s on the CPU: about {span(steps * seconds)}, without validation"
    )
    print("nothing was written")


def data_size(resolved: Resolved) -> DataSize:
    """Size of the file where there is one, else of the samples that would be made; no field is read or solved for."""
    config, problem = resolved.config.data, resolved.problem
    if config.path is None and problem.equation is not None:
        frames = None if config.frames is None else (config.frames - 1) * config.stride_time + 1
        unsolved = generate_lazily(problem.name, 1, config.resolution, frames=frames, params=config.params)
        inputs = None if unsolved.inputs is None else np.zeros(unsolved.inputs.shape, np.float32)
        blank = replace(unsolved, values=np.zeros(unsolved.values.shape, np.float32), inputs=inputs)
        found = trimmed(blank, replace(config, num_samples=None, resolution=None))
        samples = config.num_samples or GENERATED_SAMPLES
    else:
        found = find(problem, config)
        samples = found.num_samples
    arrays = [array for array in (found.inputs, found.values) if array is not None]
    return DataSize(
        samples=samples,
        frames=len(found.times),
        cells=found.grid.shape,
        signature=signature(found, config.history or problem.history, dt_input=config.dt_input),
        megabytes=samples * sum(math.prod(array.shape[1:]) * array.dtype.itemsize for array in arrays) / 1e6,
    )


def windows_to_train(resolved: Resolved, data: DataSize, horizon: int) -> int:
    """Windows of the training part; copies among the samples may shift the split a little."""
    config = resolved.config
    apart = config.data.test_path is not None or config.data.test_samples > 0
    split = config.data.split or (NO_TEST if apart else resolved.problem.split)
    in_time = split.by == "time"
    share = 0.9 if split.by.startswith("pdebench") else 1.0 if in_time else split.train
    kept = max(1, round(data.samples * share))
    if data.signature.steady:
        return kept
    frames = int(data.frames * split.train) if in_time else data.frames
    starts = frames - data.signature.history - horizon + 1
    if starts < 1:
        raise ConfigError(
            f"{data.signature.history} frames of history and {horizon} unrolled frames do not fit the "
            f"{frames} frames of a sample; lower data.history or training.horizon"
        )
    only_first = config.training.starts == "first" or config.data.observed_fraction < 1.0
    return kept if only_first else kept * starts


def random_window(shape: OperatorSignature, cells: tuple[int, ...], batch_size: int, horizon: int) -> Window:
    """Random numbers in the shape of a batch of training windows."""
    return Window(
        inputs=torch.rand(batch_size, shape.history, *cells, shape.in_channels) + 0.5,
        targets=torch.rand(batch_size, horizon, *cells, shape.out_channels) + 0.5,
        params=torch.rand(batch_size, shape.num_params) if shape.num_params else None,
    )


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
