"""Every baseline learns: within a minute of two cores, to less than half of what the floor leaves (slow).

The floor of a steady task is the mean field of the training set (climatology), of a task in time the last frame
(persistence). Each model gets the same plain recipe and the same budget, fixed beforehand: `train` sees the training
set alone, its learning rate falls to zero as the budget runs out, and the held-out samples are looked at once, after.
Append a case to CASES and it is held to the same.

The clock is the process' CPU time, summed over threads, so that other work on the machine does not count: two cores
have 120 s of it in a minute. One thread is used and less than half of that: on a free machine the wall says so too.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from small_models import SMALL
from torch import Tensor

import spectrakan as sk

BUDGETS = {"darcy2d": 50.0, "diffusion_reaction1d": 20.0}
"""CPU seconds from the building of a model to its last step, for all models alike."""
MINUTE = 60.0
"""CPU seconds in which everything must be done, the answers to the held-out samples too."""
PEAK_RATE, WARM_UP = 2e-3, 0.05
"""Highest learning rate, and the share of the budget after which it is reached."""
CASES = {
    **{name: (name, {}) for name in SMALL},
}
SHARE = {(case, "darcy2d"): 0.8 for case in ("lno", "deepokan")}
"""Where less is asked than half of the floor: systems at rest on one side do not fit an elliptic equation, and branch
and trunk have one basis for all media."""


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


def diffusion_reaction1d(samples: int = 80, cells: int = 128, history: int = 5, frames: int = 16) -> SmallSet:
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


def built(name: str, data: SmallSet, **choices) -> torch.nn.Module:
    torch.manual_seed(0)
    model = sk.build_model(name, data.signature, **SMALL[name], **choices)
    model.input_units.set(mean=data.train.inputs.mean().view(1), scale=data.train.inputs.std().view(1))
    if not data.signature.evolves:
        model.output_units.set(mean=data.train.targets.mean().view(1), scale=data.train.targets.std().view(1))
    model.fit_windows([data.train], units=False)
    return model


@torch.no_grad()
def error_of(model: torch.nn.Module, window: sk.Window) -> float:
    parts = [model.eval()(part) for part in window.inputs.split(64)]
    return root_mean_square(torch.cat(parts) - window.targets[:, 0])


def train(model: torch.nn.Module, window: sk.Window, begin: float, budget: float) -> int:
    """AdamW on batches of 16 until the CPU clock says `begin + budget`; returns the number of steps."""
    generator = torch.Generator().manual_seed(1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, weight_decay=1e-4)
    inputs, wanted = model.input_units.normalize(window.inputs), model.output_units.normalize(window.targets[:, 0])
    scale = (model.residual_scale if model.predict == "increment" else torch.ones(1)).square()
    steps = 0
    while True:
        for chosen in torch.randperm(len(wanted), generator=generator).split(16):
            spent = (time.process_time() - begin) / budget
            if spent >= 1:
                return steps
            for group in optimiser.param_groups:
                group["lr"] = PEAK_RATE * min(spent / WARM_UP, (1 + math.cos(math.pi * spent)) / 2)
            loss = ((model.forward_normalized(inputs[chosen]) - wanted[chosen]).square() / scale).mean()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            steps += 1


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("case", CASES)
def test_a_minute_of_training_halves_the_floor(case, task, small_sets, record_property):
    data, share = small_sets[task], SHARE.get((case, task), 0.5)
    name, choices = CASES[case]
    begin = time.process_time()
    model = built(name, data, **choices)
    steps = train(model, data.train, begin, BUDGETS[task])
    reached = error_of(model, data.test) / data.floor
    seconds = time.process_time() - begin
    record_property("share_of_floor", reached)
    print(f"{case} {task}: {reached:.3f} of the floor, {steps} steps in {seconds:.1f} CPU seconds", flush=True)
    assert seconds < MINUTE
    assert reached < share
