"""Every model learns: a minute on a small set leaves less than half of what the floor leaves (slow).

The floor of a steady task is the mean field of the training set (climatology), of a task in time the last frame
(persistence). Append a model's name to MODELS and it is held to the same.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import spectrakan as sk

MODELS = ["unet", "fno", "ffno", "lno", "local_fno", "transolver", "cvit", "deeponet", "deepokan"]
SHARE = {("lno", "darcy2d"): 0.8, ("deeponet", "darcy2d"): 0.8, ("deepokan", "darcy2d"): 0.8}
"""Where less is asked than half of the floor: systems at rest on one side do not fit an elliptic equation, and
branch and trunk have one basis for all media."""
LIMIT = 120.0
"""Seconds of computing by one thread, a minute of two cores; whatever else the machine does does not count."""


@dataclass(frozen=True)
class SmallSet:
    """A task as its signature and two windows; `floor` is the root mean square error of the floor on `test`."""

    signature: sk.OperatorSignature
    train: sk.Window
    test: sk.Window
    floor: float


def darcy2d(samples: int = 320, cells: int = 32) -> SmallSet:
    made = sk.generate("darcy2d", num_samples=samples, resolution=cells, seed=0)
    inputs, targets = (torch.as_tensor(np.asarray(part), dtype=torch.float32) for part in (made.inputs, made.values))
    signature = sk.OperatorSignature(
        space_dims=2, history=1, in_channels=1, out_channels=1, boundary=("dirichlet", "dirichlet"), steady=True
    )
    held = samples // 5
    train, test = sk.Window(inputs[held:], targets[held:]), sk.Window(inputs[:held], targets[:held])
    return SmallSet(signature, train, test, root_mean_square(test.targets - train.targets.mean(0)))


def diffusion_reaction1d(samples: int = 80, cells: int = 64, history: int = 5, frames: int = 16) -> SmallSet:
    """Each next frame of the first ones, while the field still changes its shape."""
    made = sk.generate("diffusion_reaction1d", num_samples=samples, resolution=cells, seed=0)
    values = torch.as_tensor(np.asarray(made.values)[:, :frames], dtype=torch.float32)
    inputs = torch.stack([values[:, s : s + history] for s in range(frames - history)], dim=1)
    targets = values[:, history:, None]
    signature = sk.OperatorSignature(
        space_dims=1, history=history, in_channels=1, out_channels=1, boundary=("periodic",)
    )
    held = samples // 5
    train = sk.Window(inputs[held:].flatten(0, 1), targets[held:].flatten(0, 1))
    test = sk.Window(inputs[:held].flatten(0, 1), targets[:held].flatten(0, 1))
    return SmallSet(signature, train, test, root_mean_square(test.targets - test.inputs[:, -1:]))


def root_mean_square(error: Tensor) -> float:
    return float(error.square().mean().sqrt())


TASKS = {"darcy2d": darcy2d, "diffusion_reaction1d": diffusion_reaction1d}


@pytest.fixture(scope="module")
def small_sets():
    return {name: make() for name, make in TASKS.items()}


def built(name: str, data: SmallSet) -> torch.nn.Module:
    torch.manual_seed(0)
    model = sk.build_model(name, data.signature, variant="small")
    model.input_units.set(mean=data.train.inputs.mean().view(1), scale=data.train.inputs.std().view(1))
    if not data.signature.evolves:
        model.output_units.set(mean=data.train.targets.mean().view(1), scale=data.train.targets.std().view(1))
    model.prepare([data.train])
    return model


def error_of(model: torch.nn.Module, window: sk.Window) -> float:
    model.eval()
    with torch.no_grad():
        parts = [model(part) for part in window.inputs.split(64)]
    model.train()
    return root_mean_square(torch.cat(parts) - window.targets[:, 0])


def train(model: torch.nn.Module, data: SmallSet, goal: float) -> tuple[float, float]:
    """Plain AdamW on batches of 16 until the error on the held-out samples is at the goal, or time is up."""
    generator = torch.Generator().manual_seed(1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    wanted = model.output_units.normalize(data.train.targets[:, 0])
    scale = (model.increment_scale if model.increments else torch.ones(1)).square()
    begin, error = time.process_time(), math.inf
    while error > goal and time.process_time() - begin < LIMIT:
        for chosen in torch.randperm(len(wanted), generator=generator).split(16):
            answer = model.forward_normalized(model.input_units.normalize(data.train.inputs[chosen]))
            loss = ((answer - wanted[chosen]).square() / scale).mean()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
        error = error_of(model, data.test)
    return error, time.process_time() - begin


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", MODELS)
def test_a_minute_of_training_halves_the_floor(name, task, small_sets, record_property):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        data = small_sets[task]
        share = SHARE.get((name, task), 0.5)
        error, seconds = train(built(name, data), data, share * data.floor)
    finally:
        torch.set_num_threads(threads)
    record_property("share_of_floor", error / data.floor)
    print(f"{name} {task}: {error / data.floor:.3f} of the floor after {seconds:.0f} s of computing")
    assert error < share * data.floor
