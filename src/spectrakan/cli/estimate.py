"""What a run would take: shapes, parameters, memory and time, measured on one batch of random numbers."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch

from spectrakan.data.catalog import task
from spectrakan.data.prepare import GENERATED_SAMPLES, find
from spectrakan.data.windows import signature
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models import build_model
from spectrakan.training.settings import RunSettings
from spectrakan.training.unroll import Objective


@dataclass(frozen=True)
class _Data:
    """What a run would learn from: facts of its file, or of what would be generated."""

    samples: int
    frames: int
    cells: tuple[int, ...]
    signature: OperatorSignature
    megabytes: float


def print_estimate(choices: RunSettings) -> None:
    """Build the model for the data's shapes, take two steps on random numbers, and extrapolate."""
    data, training = _data(choices), choices.training
    facts = data.signature
    named = {key: value for key, value in choices.model.items() if key not in {"name", "variant"}}
    model = build_model(choices.model["name"], facts, variant=choices.model["variant"], **named)
    horizon = 1 if facts.steady else training.horizon
    window = _random_window(facts, data.cells, training.batch_size, horizon)
    windows = _windows(choices, data, horizon)
    steps = training.epochs * math.ceil(windows / training.batch_size)
    seconds, saved = _one_step(Objective(model, training), window, horizon)
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"model       {choices.model['name']}, {weights} parameters")
    print(f"input       {tuple(window.inputs.shape)} = (batch, history, *space, fields)")
    print(f"target      {tuple(window.targets.shape)} = (batch, unrolled frames, *space, fields)")
    print(f"data        {data.samples} samples, {data.megabytes:.0f} MB of fields, {windows} windows to train on")
    print(f"memory      about {(16 * weights + saved) / 1e6:.0f} MB for weights, optimizer and activations of a step")
    print(
        f"time        {steps} steps of {seconds:.3f} s on the CPU: about {_span(steps * seconds)}, validation beside"
    )
    print("nothing was written")


def _data(choices: RunSettings) -> _Data:
    """Facts of the file where there is one, read without its fields; else of the samples that would be made."""
    entry = task(choices.task)
    history = choices.data.history or entry.history
    if choices.data.path is not None or entry.equation is None:
        found = find(entry, choices.data)
        arrays = [array for array in (found.inputs, found.values) if array is not None]
        size = sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)
        shape = found.grid.shape
        return _Data(found.num_samples, len(found.times), shape, signature(found, history), size / 1e6)
    axes = entry.resolution
    cells = axes if choices.data.resolution is None else tuple(choices.data.resolution for _ in axes)
    facts = OperatorSignature(
        space_dims=len(cells),
        history=history,
        in_channels=len(entry.input_fields or entry.fields),
        out_channels=len(entry.fields),
        boundary=entry.equation.boundary,
        steady=entry.steady,
    )
    samples = choices.data.num_samples or GENERATED_SAMPLES
    values = samples * math.prod(cells) * (entry.frames * len(entry.fields) + len(entry.input_fields))
    return _Data(samples, entry.frames, cells, facts, 4 * values / 1e6)


def _windows(choices: RunSettings, data: _Data, horizon: int) -> int:
    """Windows of the training part; copies among the samples may shift the split a little."""
    split = choices.data.split or task(choices.task).split
    share = split.train if split.pdebench == "none" else 0.9
    kept = max(1, round(data.samples * share))
    if data.signature.steady:
        return kept
    starts = data.frames - data.signature.history - horizon + 1
    if starts < 1:
        raise ConfigError(
            f"{data.signature.history} frames that are seen and {horizon} that are unrolled do not fit the "
            f"{data.frames} frames of a sample; lower data.history or training.horizon"
        )
    only_first = choices.training.starts == "first" or choices.data.observed_fraction < 1.0
    return kept if only_first else kept * starts


def _random_window(facts: OperatorSignature, cells: tuple[int, ...], batch_size: int, horizon: int) -> Window:
    params = torch.rand(batch_size, facts.num_params) if facts.num_params else None
    return Window(
        inputs=torch.rand(batch_size, facts.history, *cells, facts.in_channels) + 0.5,
        targets=torch.rand(batch_size, horizon, *cells, facts.out_channels) + 0.5,
        params=params,
    )


def _one_step(objective: Objective, window: Window, horizon: int) -> tuple[float, int]:
    """Seconds of a step, and bytes that its graph keeps for the way back."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    def step() -> None:
        loss = objective(window, horizon)
        if loss.requires_grad:  # floors have nothing to train
            loss.backward()

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        step()
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin, sum(kept.values())


def _span(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
