"""Generated samples depend on the recipe and their number alone, and solve their equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from spectrakan.data import generate as module
from spectrakan.data.generate import generate, solve
from spectrakan.errors import ConfigError, ShapeError

SMALL: dict[str, dict[str, Any]] = {
    "cns1d": {"resolution": 16, "frames": 2, "params": {"min_cells": 16}},
    "diffusion_reaction1d": {"resolution": 32, "frames": 3},
    "darcy2d": {"resolution": 8},
    "shallow_water2d": {"resolution": (8, 12), "frames": 4},
    "droplet2d": {"resolution": 8, "frames": 4},
}


@pytest.mark.parametrize("task", SMALL)
def test_a_sample_does_not_depend_on_how_many_or_how_they_are_made(task: str, monkeypatch: pytest.MonkeyPatch):
    whole = generate(task, 5, seed=3, **SMALL[task])
    few = generate(task, 2, seed=3, **SMALL[task])
    monkeypatch.setattr(module, "CHUNK_VALUES", 1)
    single = generate(task, 5, seed=3, **SMALL[task])
    np.testing.assert_allclose(few.values, np.asarray(whole.values)[:2], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(single.values, whole.values, rtol=1e-12, atol=1e-12)
    if whole.inputs is not None:
        assert np.array_equal(np.asarray(few.inputs), whole.inputs[:2])
    other = generate(task, 2, seed=4, **SMALL[task])
    assert not np.allclose(other.values, few.values)
    assert not np.allclose(whole.values[0], whole.values[1])
    assert whole.values.dtype == np.float64


@pytest.mark.parametrize("task", ["shallow_water2d", "droplet2d"])
def test_frames_follow_from_the_initial_state(task: str):
    made = generate(task, 2, **SMALL[task])
    if task == "shallow_water2d":
        again = solve(task, made.values[:, 0], made.times.tolist())
        np.testing.assert_allclose(again.numpy(), made.values, rtol=1e-12, atol=1e-12)
    assert np.abs(np.diff(made.values, axis=1)).max() > 1e-4


def test_a_steady_solution_belongs_to_its_input():
    made = generate("darcy2d", 3, resolution=12, params={"beta": 2.5})
    assert made.inputs is not None
    pressure = solve("darcy2d", torch.from_numpy(made.inputs[:, 0]), [0.0], beta=2.5)
    np.testing.assert_allclose(pressure.numpy(), made.values, rtol=1e-12)
    assert made.constants["beta"] == 2.5
    assert made.steady


def test_a_range_is_drawn_for_each_sample_and_used():
    made = generate("darcy2d", 4, resolution=8, params={"beta": [1.0, 3.0]})
    assert made.param_names == ("beta",)
    assert "beta" not in made.constants
    assert made.params is not None
    assert made.params.shape == (4, 1)
    assert len(np.unique(made.params)) == 4
    assert ((made.params >= 1) & (made.params <= 3)).all()
    assert made.inputs is not None
    for sample, (beta,) in enumerate(made.params.tolist()):
        expected = solve("darcy2d", made.inputs[sample], [0.0], beta=beta)
        np.testing.assert_allclose(made.values[sample], expected[0].numpy(), rtol=1e-12)
    few = generate("darcy2d", 2, resolution=8, params={"beta": [1.0, 3.0]}).params
    assert few is not None
    assert np.array_equal(few, made.params[:2])


def test_more_frames_go_on_at_the_same_step():
    made = generate("shallow_water2d", 1, resolution=8, frames=103)
    assert made.times[:3].tolist() == [0.0, 0.01, 0.02]
    assert made.times[-3:].tolist() == [1.0, 1.01, 1.02]
    assert generate("droplet2d", 1, resolution=8, frames=3).times.tolist() == [0.002, 0.01, 0.02]


def test_lazy_samples_are_made_when_read():
    made: list[tuple[int, int]] = []
    lazy = generate("darcy2d", 1000, 8, dtype=None, progress=lambda done, total: made.append((done, total)))
    held = generate("darcy2d", 5, resolution=8)
    assert made == []
    np.testing.assert_allclose(lazy.values[4], held.values[4], rtol=1e-12)
    np.testing.assert_allclose(lazy.values[1:4, 0, 2], held.values[1:4, 0, 2], rtol=1e-12)
    np.testing.assert_allclose(lazy.values[-996], held.values[4], rtol=1e-12)
    np.testing.assert_allclose(lazy.values[0:5:2, 0], held.values[::2, 0], rtol=1e-12)
    assert lazy.values[3:3, 0].shape == (0, 8, 8, 1)
    assert made[0] == (5, 1000)
    part = generate("darcy2d", 3, resolution=8, dtype=None)
    np.testing.assert_allclose(np.asarray(part.values, dtype=np.float32), held.values[:3], rtol=1e-6)
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(part.values, copy=False)


def test_progress_reaches_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CHUNK_VALUES", 2 * 64)
    seen: list[tuple[int, int]] = []
    generate("darcy2d", 5, resolution=8, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"params": {"bta": 1.0}}, "unknown key 'darcy2d.bta'; did you mean 'beta'"),
        ({"params": {"beta": "much"}}, "darcy2d.beta"),
        ({"params": {"beta": [3.0, 1.0]}}, "must be a number or a pair"),
        ({"params": {"low": [-1.0, 0.5]}}, "darcy2d.low"),
        ({"params": {"family": "pdebench"}}, "unknown key 'darcy2d.family'"),
        ({"resolution": 3}, "at least 4 cells"),
        ({"resolution": (8, 8, 8)}, "2 axes"),
        ({"frames": 2}, "a steady problem has one frame"),
        ({"num_samples": 0}, "num_samples must be at least 1"),
        ({"seed": -1}, "seed at least 0"),
    ],
)
def test_wrong_wishes_are_refused_before_anything_is_solved(choices: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        generate("darcy2d", dtype=None, **({"num_samples": 1} | choices))


def test_solve_refuses_what_it_cannot_start_from():
    medium = torch.ones(1, 8, 8, 1)
    with pytest.raises(ConfigError, match="did you mean 'beta'"):
        solve("darcy2d", medium, [0.0], betta=1.0)
    with pytest.raises(ShapeError, match="channels coefficient, got shape"):
        solve("darcy2d", medium[0], [0.0])
    with pytest.raises(ConfigError, match="times must"):
        solve("shallow_water2d", torch.ones(1, 8, 8, 3), [0.5, 0.1])
    with pytest.raises(ConfigError, match="times must"):
        solve("shallow_water2d", torch.ones(1, 8, 8, 3), [])
    with pytest.raises(ConfigError, match="NaN or infinity"):
        solve("darcy2d", medium * float("nan"), [0.0])
