"""The tasks are those of the paper."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest
import torch

from spectrakan.data import problems
from spectrakan.data.climate import load_climate
from spectrakan.data.generate import generate, solve
from spectrakan.data.problems import (
    PROBLEMS,
    Problem,
    all_problems,
    equation_of,
    find_problem,
    problem_named,
    register_problem,
)
from spectrakan.errors import ConfigError
from spectrakan.fields import FieldSpec, Trajectories
from spectrakan.pde.equation import Equation

PAPER = {
    "cns1d": ("density, velocity, pressure", (128,), 21, 10, 11),
    "diffusion_reaction1d": ("u", (256,), 101, 5, 96),
    "darcy2d": ("coefficient -> pressure", (64, 64), 1, 1, 1),
    "shallow_water2d": ("height, velocity_x, velocity_y", (64, 64), 101, 10, 91),
    "droplet2d": ("rho, velocity_x, velocity_y", (32, 32), 101, 1, 31),
    "climate2d": ("temperature -> pressure", (32, 64), 1, 1, 1),
}


@pytest.mark.parametrize("name", PAPER)
def test_fields_grid_and_frames(name: str):
    entry = problem_named(name)
    found = (entry.mapping, entry.resolution, entry.frames, entry.history, entry.horizon)
    assert found == PAPER[name]
    assert entry.name == name
    assert set(PROBLEMS) == set(PAPER)


def test_the_horizon_ends_where_the_frames_or_the_scores_end():
    for entry in PROBLEMS.values():
        assert entry.steady or entry.history + entry.horizon <= entry.frames
    droplet = equation_of("droplet2d")
    assert droplet.times[0] == 0.002
    assert problem_named("droplet2d").scored_times == tuple(droplet.times[frame] for frame in (11, 16, 21, 26, 31))


def test_climate_says_what_its_file_holds():
    days, entry = load_climate(), problem_named("climate2d")
    assert (days.fields, days.input_fields, days.grid.shape) == (
        entry.fields, entry.input_fields, entry.resolution
    )  # fmt: skip
    assert entry.split.by == "sample_order"


def test_unknown_names_hear_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'darcy2d'"):
        problem_named("darcy")
    with pytest.raises(ConfigError, match="'climate2d' has no solver"):
        equation_of("climate2d")


def decay(name: str = "decay1d") -> Equation:
    """u_t = -u, solved exactly."""

    def sample(count, shape, parameters, generator):
        return torch.rand(count, *shape, 1, generator=generator, dtype=torch.float64)

    def solved(initial, times, parameters):
        return torch.stack([initial * np.exp(-time) for time in times], dim=1)

    return Equation(
        name=name, fields=(FieldSpec("u"),), bounds=((0.0, 1.0),), boundary=("periodic",), resolution=(16,),
        times=(0.0, 0.5, 1.0), sample=sample, solve=solved,
    )  # fmt: skip


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(problems, "_registered", {})


@pytest.mark.usefixtures("registry")
def test_a_registered_equation_is_sampled_and_solved_by_name():
    known = register_problem(decay())
    assert (known.history, known.horizon, known.fields) == (1, 2, (FieldSpec("u"),))
    made = generate("decay1d", 3, seed=2)
    assert made.name == "decay1d"
    assert np.allclose(made.values[:, 2], made.values[:, 0] * np.exp(-1.0), rtol=1e-14)
    assert float(solve("decay1d", torch.ones(1, 16, 1), [2.0])[0, 0, 3, 0]) == pytest.approx(np.exp(-2.0))
    assert "decay1d" in all_problems()


@pytest.mark.usefixtures("registry")
def test_names_are_taken_once():
    register_problem(decay())
    with pytest.raises(ConfigError, match="'decay1d' exists already"):
        register_problem(decay())
    with pytest.raises(ConfigError, match="'darcy2d' exists already"):
        register_problem(decay("darcy2d"))


@pytest.mark.usefixtures("registry")
def test_an_installed_package_brings_a_problem(monkeypatch: pytest.MonkeyPatch):
    point = EntryPoint("cooling", f"{__name__}:decay", problems.ENTRY_POINTS)
    monkeypatch.setattr(EntryPoint, "load", lambda self: decay)
    monkeypatch.setattr(problems, "entry_points", lambda group: [point] if group == problems.ENTRY_POINTS else [])
    assert problem_named("cooling").name == "cooling"
    assert generate("cooling", 1).values.shape == (1, 3, 16, 1)
    assert find_problem("nothing of the kind") is None


def test_data_pose_a_problem_of_their_own():
    data = Trajectories.from_arrays(np.zeros((4, 9, 8, 8, 2)), fields=("a", "b"), name="mine")
    own = Problem.from_trajectories(data)
    assert (own.name, own.history, own.horizon, own.resolution, own.steady) == ("mine", 2, 7, (8, 8), False)
    assert own.held is data
