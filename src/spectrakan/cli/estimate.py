"""What a run would take: shapes, parameters, memory and time, measured on one batch of random numbers."""

from __future__ import annotations

import math
import time

import torch

from spectrakan.data.catalog import task
from spectrakan.data.prepare import GENERATED_SAMPLES
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models import build_model
from spectrakan.training.settings import RunSettings
from spectrakan.training.unroll import Objective


def print_estimate(choices: RunSettings) -> None:
    """Build the model for the task's shapes, take two steps on random numbers, and extrapolate."""
    entry, training = task(choices.task), choices.training
    axes = entry.resolution
    cells = axes if choices.data.resolution is None else tuple(choices.data.resolution for _ in axes)
    history = choices.data.history or entry.history
    inputs, outputs = len(entry.input_fields or entry.fields), len(entry.fields)
    facts = OperatorSignature(
        space_dims=len(cells),
        history=history,
        in_channels=inputs,
        out_channels=outputs,
        boundary=() if entry.equation is None else entry.equation.boundary,
        steady=entry.steady,
    )
    named = {key: value for key, value in choices.model.items() if key not in {"name", "variant"}}
    model = build_model(choices.model["name"], facts, variant=choices.model["variant"], **named)
    horizon = 1 if entry.steady else training.horizon
    window = Window(
        inputs=torch.rand(training.batch_size, history, *cells, inputs) + 0.5,
        targets=torch.rand(training.batch_size, horizon, *cells, outputs) + 0.5,
    )
    samples = choices.data.num_samples or GENERATED_SAMPLES
    windows = max(1, round(samples * (choices.data.split or entry.split).train))
    windows *= 1 if entry.steady else max(1, entry.frames - history - horizon + 1)
    steps = training.epochs * math.ceil(windows / training.batch_size)
    seconds, saved = _one_step(Objective(model, training), window, horizon)
    weights = sum(parameter.numel() for parameter in model.parameters())
    values = samples * entry.frames * math.prod(cells) * outputs
    print(f"model       {choices.model['name']}, {weights} parameters")
    print(f"input       {tuple(window.inputs.shape)} = (batch, history, *space, fields)")
    print(f"target      {tuple(window.targets.shape)} = (batch, unrolled frames, *space, fields)")
    print(f"data        {samples} samples, about {4 * values / 1e6:.0f} MB in memory, {windows} windows to train on")
    print(f"memory      about {(16 * weights + saved) / 1e6:.0f} MB for weights, optimizer and activations of a step")
    print(
        f"time        {steps} steps of {seconds:.3f} s on the CPU: about {_span(steps * seconds)}, validation beside"
    )
    print("nothing was written")


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
