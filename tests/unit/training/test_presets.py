"""Presets: budgets of the tasks and of own problems, and how weights are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from spectrakan.config import as_mapping
from spectrakan.data.files import write_dataset
from spectrakan.data.generate import generate
from spectrakan.data.prepare import prepare
from spectrakan.data.problems import Problem, problem_named
from spectrakan.fields import Trajectories
from spectrakan.models.spectrakan import SpectraKANConfig
from spectrakan.models.trivial import Persistence, TrivialConfig
from spectrakan.training.assemble import validator
from spectrakan.training.presets import BUDGETS, OWN_RATES, PLANS, SIZES, preset
from spectrakan.training.resolve import resolve
from spectrakan.training.runtime import Runtime


def test_weights_are_chosen_by_the_relative_error_of_the_whole_rollout(tmp_path):
    made = generate("diffusion_reaction1d", 20, 8)
    # Ramps of different slopes, so that no trajectory is a copy; their relative errors are the same.
    np.asarray(made.values)[...] = np.arange(101.0)[None, :, None, None] * np.arange(1.0, 21.0)[:, None, None, None]
    write_dataset(tmp_path / "ramp.h5", made)
    choices = resolve("diffusion_reaction1d", [f"data.path={tmp_path / 'ramp.h5'}", "model.name=persistence"]).config
    prepared = prepare(choices.task, choices.data)
    model = Persistence(prepared.signature(), TrivialConfig())
    # Persistence stays at frame 4 while the truth goes on to 100: errors 1 .. 96.
    expected = (sum(e**2 for e in range(1, 97)) / sum(t**2 for t in range(5, 101))) ** 0.5
    runtime = Runtime(torch.device("cpu"), torch.float32)
    assert validator(choices, prepared, runtime)(model) == pytest.approx(expected)


def test_long_is_ten_times_short_and_nothing_else():
    for name in PLANS["short"]:
        short, long = (preset(problem_named(name), budget=budget) for budget in ("short", "long"))
        assert long.training.epochs == 10 * short.training.epochs
        assert replace(long.training, epochs=short.training.epochs) == short.training
        assert (long.data, long.model) == (short.data, short.model)


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_default_model_is_the_class_default_at_every_budget(budget):
    expected = as_mapping(SpectraKANConfig())
    for name in PLANS["short"]:
        model = preset(problem_named(name), budget=budget).model
        assert {key: model[key] for key in expected} == expected


@pytest.mark.parametrize("model", SIZES)
def test_a_preset_has_the_size_that_the_table_states(model):
    for name, dims in (("cns1d", 1), ("droplet2d", 2)):
        made, size = preset(problem_named(name), model).model, SIZES[model][dims - 1]
        assert {key: made[key] for key in size} == size


def test_a_rate_of_a_problem_changes_the_rate_alone(monkeypatch):
    problem = problem_named("droplet2d")
    before = preset(problem, "ffno")
    monkeypatch.setitem(OWN_RATES, "droplet2d", {"ffno": 0.005})
    after = preset(problem, "ffno")
    assert after.training.learning_rate == 0.005
    assert replace(after, training=before.training) == before


def test_a_registered_or_own_problem_gets_steps_of_its_budget():
    data = Trajectories.from_arrays(np.zeros((10, 6, 64, 64, 1)), ("u",), name="own")
    problem = Problem.from_trajectories(data)
    steps = {budget: preset(problem, budget=budget, windows=400).training for budget in ("smoke", "short", "long")}
    assert {budget: made.epochs * 400 / made.batch_size for budget, made in steps.items()} == {
        "smoke": 50.0, "short": 1000.0, "long": 10000.0
    }  # fmt: skip
