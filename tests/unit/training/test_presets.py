"""Presets: budgets of the tasks and of own problems, PDEBench's protocol, its windows and how weights are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from spectrakan.config import as_mapping
from spectrakan.data.generate import generate
from spectrakan.data.prepare import prepare
from spectrakan.data.problems import Problem, problem_named
from spectrakan.data.write import write_dataset
from spectrakan.fields import Trajectories
from spectrakan.models.spectrakan import SpectraKANConfig
from spectrakan.models.trivial import Persistence, TrivialConfig
from spectrakan.training.assemble import training_windows, validation_windows
from spectrakan.training.presets import BUDGETS, PLANS, preset
from spectrakan.training.resolve import resolve
from spectrakan.training.runtime import Runtime
from spectrakan.training.validate import validator

TASKS = ("cns1d", "diffusion_reaction1d", "darcy2d", "shallow_water2d")


def chosen(task: str, model: str, *changes: str):
    return resolve(task, ["budget=pdebench", f"model.name={model}", *changes]).config


@pytest.mark.parametrize("model", ["fno", "unet", "spectrakan"])
@pytest.mark.parametrize("task", TASKS)
def test_what_all_tasks_share(task, model):
    choices = chosen(task, model)
    found = choices.training
    assert (found.optimizer, found.learning_rate, found.weight_decay) == ("adam", 1e-3, 1e-4)
    assert (found.schedule, found.halve_epochs, found.epochs) == ("step", 100, 500)
    assert (found.loss, found.step_reduction, found.starts) == ("mse", "sum", "first")
    assert (found.clip_norm, found.normalize, choices.model["ema_decay"], found.curriculum) == (0.0, False, 0.0, 0.0)
    assert (found.validation, found.validation_frames) == ("mse", found.horizon)
    assert choices.model["predict"] == "direct"
    assert choices.runtime.precision == "float32"


def test_what_differs_between_tasks():
    found = {
        name: (made.data.history, made.training.batch_size, made.training.horizon, made.training.validate_epochs)
        for name in TASKS
        for made in [chosen(name, "fno")]
    }
    assert found == {
        "cns1d": (10, 100, 11, 2),
        "diffusion_reaction1d": (5, 50, 25, 1),
        "darcy2d": (None, 50, 1, 2),
        "shallow_water2d": (10, 5, 91, 2),
    }
    modes = {name: chosen(name, "fno").training.mode for name in TASKS}
    assert modes == dict.fromkeys(TASKS, "autoregressive") | {"darcy2d": "one_step"}
    assert (chosen("cns1d", "fno").model["width"], chosen("cns1d", "fno").model["num_modes"]) == (20, 12)


def test_the_u_net_learns_from_the_last_frames_or_with_noise():
    found = {
        name: (made.mode, made.gradient_steps, made.noise)
        for name in TASKS
        for made in [chosen(name, "unet").training]
    }
    assert found == {
        "cns1d": ("pushforward", 20, 0.0),
        "diffusion_reaction1d": ("pushforward", 10, 0.0),
        "darcy2d": ("one_step", 1, 1e-3),
        "shallow_water2d": ("pushforward", 20, 0.0),
    }


def test_one_window_from_the_start_of_each_trajectory(tmp_path):
    # Frames of the reaction at rest in space: the frame's number can be read from its values.
    made = generate("diffusion_reaction1d", 20, 8)
    numbers = np.arange(101.0)[None, :, None, None] + 1000.0 * np.arange(20.0)[:, None, None, None]
    np.asarray(made.values)[...] = numbers
    write_dataset(tmp_path / "frames.h5", made)
    choices = chosen(
        "diffusion_reaction1d", "fno", f"data.path={tmp_path / 'frames.h5'}", "data.split.by=pdebench_first"
    )
    prepared = prepare(choices.task, choices.data)
    assert prepared.split.test == prepared.part("validation").samples == (0, 1)
    windows = training_windows(choices, prepared)
    assert len(windows) == 18
    first = windows.gather([0])
    assert first.inputs.flatten(1).unique().tolist() == [2000.0 + frame for frame in range(5)]
    assert first.targets.flatten(1).unique().tolist() == [2000.0 + frame for frame in range(5, 30)]
    judged = validation_windows(choices, prepared)
    assert judged is not None
    assert judged.gather([1]).targets.flatten(1).unique().tolist() == [1000.0 + frame for frame in range(5, 30)]
    ours = resolve("diffusion_reaction1d", [f"data.path={tmp_path / 'frames.h5'}"]).config
    assert len(training_windows(ours, prepare(ours.task, ours.data))) == 16 * (101 - 5 - 2 + 1)


def test_weights_are_chosen_by_the_mean_square_of_the_frames_trained_on(tmp_path):
    made = generate("diffusion_reaction1d", 20, 8)
    np.asarray(made.values)[...] = np.arange(101.0)[None, :, None, None]
    write_dataset(tmp_path / "ramp.h5", made)
    data = [f"data.path={tmp_path / 'ramp.h5'}", "data.split.by=pdebench_last"]
    choices = chosen("diffusion_reaction1d", "persistence", *data)
    prepared = prepare(choices.task, choices.data)
    windows = validation_windows(choices, prepared)
    model = Persistence(windows.signature(), TrivialConfig())
    runtime = Runtime(torch.device("cpu"), torch.float32)
    # Persistence stays at frame 4 while the truth goes on to 29: errors 1 .. 25.
    squares = sum(error**2 for error in range(1, 26)) / 25
    assert validator(windows, choices.training, runtime)(model) == pytest.approx(squares)
    relative = resolve("diffusion_reaction1d").config.training
    expected = (sum(e**2 for e in range(1, 26)) / sum(t**2 for t in range(5, 30))) ** 0.5
    assert validator(windows, relative, runtime)(model) == pytest.approx(expected)


def test_long_is_ten_times_short_and_nothing_else():
    for name in PLANS["short"]:
        short, long = (preset(problem_named(name), budget=budget) for budget in ("short", "long"))
        assert long.training.epochs == 10 * short.training.epochs
        assert replace(long.training, epochs=short.training.epochs) == short.training
        assert (long.data, long.model) == (short.data, short.model)


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_default_model_is_the_class_default_at_every_budget(budget):
    expected = as_mapping(SpectraKANConfig())
    for name in PLANS["pdebench" if budget == "pdebench" else "short"]:
        model = preset(problem_named(name), budget=budget).model
        assert {key: model[key] for key in expected} == expected


def test_a_registered_or_own_problem_gets_steps_of_its_budget():
    data = Trajectories.from_arrays(np.zeros((10, 6, 64, 64, 1)), ("u",), name="own")
    problem = Problem.from_trajectories(data)
    steps = {budget: preset(problem, budget=budget, windows=400).training for budget in ("smoke", "short", "long")}
    assert {budget: made.epochs * 400 / made.batch_size for budget, made in steps.items()} == {
        "smoke": 50.0, "short": 1000.0, "long": 10000.0
    }  # fmt: skip
