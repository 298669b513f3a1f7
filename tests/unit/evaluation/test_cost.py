"""Costs of rollouts: memory counted to the byte, times in turns, speed-ups of the sign that is known."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from known_operators import Scaled, Solver, evolving, held

from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError
from spectrakan.evaluation import rollout_cost, speed_up
from spectrakan.evaluation.cost import interleaved, peak_bytes
from spectrakan.evaluation.speed_up import SolverPoint, SolverRun, brought_to_cells, equal_error
from spectrakan.fields import Grid, OperatorSignature

CPU = torch.device("cpu")
EVOLVING = OperatorSignature(space_dims=1, history=5, in_channels=1, out_channels=1, boundary=("periodic",))
STEADY = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True)


class Slow(Scaled):
    """Takes a known time for each frame."""

    def __init__(self, signature, pause=0.02):
        super().__init__(signature)
        self.pause = pause

    def _forward(self, history, params, axes):
        time.sleep(self.pause)
        return super()._forward(history, params, axes)


def test_memory_is_counted_to_the_byte():
    x = torch.zeros(1000)
    assert peak_bytes(lambda: x.view(10, 100).add_(1.0), CPU) == 0  # nothing new
    assert peak_bytes(lambda: x + 1, CPU) == 4000
    assert peak_bytes(lambda: (x + 1).double(), CPU) == 12000  # both live at once
    assert peak_bytes(lambda: [float((x + 1)[0]) for _ in range(9)], CPU) < 4100  # one after the other

    def held_together() -> list[torch.Tensor]:
        return [x + place for place in range(9)]

    assert peak_bytes(held_together, CPU) == 36000


def test_time_and_memory_of_a_rollout():
    data = held(samples=3, frames=6, space=(64,))
    found = rollout_cost(Slow(evolving((64,))), data, rounds=2)
    assert 0.1 <= found["seconds"] < 10
    assert found["seconds_per_frame"] == pytest.approx(found["seconds"] / 15)
    assert (found["num_samples"], found["horizon"], found["device"]) == (3, 5, "cpu")
    assert found["threads"] == torch.get_num_threads()
    frame = 3 * 64 * 4
    # All five frames, their stack, and a few of the step at hand.
    assert 10 * frame <= found["peak_memory_mb"] * 1e6 <= 20 * frame
    double = rollout_cost(Scaled(evolving((64,))), data, horizon=5, samples=[0, 1, 2, 0, 1, 2], rounds=1)
    assert double["peak_memory_mb"] == pytest.approx(2 * found["peak_memory_mb"], rel=0.01)


def test_every_round_runs_every_case_in_turn():
    calls: list[str] = []
    found = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert calls == ["a", "b"] * 4  # one to warm up
    assert found["a"].shape == (3,)


def test_linear_fields_are_brought_to_finer_cells_exactly():
    coarse, fine = Grid.uniform((8, 6)), Grid.uniform((21, 24))

    def plane(grid: Grid) -> torch.Tensor:
        x, y = grid.coordinates
        return (2 * x[:, None] - 3 * y[None, :] + 1).reshape(1, 1, *grid.shape, 1)

    torch.testing.assert_close(brought_to_cells(plane(coarse), fine), plane(fine), rtol=1e-12, atol=1e-12)
    circle = Grid.uniform((64,), boundary=("periodic",))
    rough = Grid.uniform((32,), boundary=("periodic",))
    wave = [torch.cos(2 * torch.pi * grid.coordinates[0]).reshape(1, 1, -1, 1) for grid in (rough, circle)]
    assert float((brought_to_cells(wave[0], circle) - wave[1]).abs().max()) < (2 * np.pi / 32) ** 2 / 8 * 1.01


def test_the_solver_at_equal_error_is_the_coarsest_one_that_is_accurate_enough():
    points = [SolverPoint((16,), 0.4, 1.0), SolverPoint((32,), 0.1, 4.0), SolverPoint((64,), 0.0, 16.0)]
    inside = equal_error(points, 0.05, 2.0)
    assert (inside["resolution"], inside["speed_up"], inside["bound"]) == ((64,), 8.0, None)
    bad = equal_error(points, 0.9, 2.0)
    assert (bad["resolution"], bad["speed_up"], bad["bound"]) == ((16,), 0.5, "at most")
    assert equal_error(points, float("nan"), 2.0) is None
    failed = equal_error([SolverPoint((16,), float("inf"), float("nan")), *points[1:]], 0.2, 2.0)
    assert (failed["resolution"], failed["bound"]) == ((32,), None)


def test_the_gain_is_the_solvers_time_for_the_predicted_frames_over_the_models(monkeypatch):
    """By a clock that is read from a table: true milliseconds may come out either way on a busy machine."""
    seconds = {"solver 8": 2.0, "given 8": 1.0, "solver 16": 5.0, "given 16": 2.0, "solver 64": 18.0, "given 64": 6.0}

    def table(cases, rounds, progress):
        return {name: torch.full((rounds,), (seconds | {"model": 0.5})[name], dtype=torch.float64) for name in cases}

    monkeypatch.setattr(sys.modules[speed_up.__module__], "interleaved", table)
    data = generate("diffusion_reaction1d", 2, 64, seed=0, frames=11)
    found = speed_up(Scaled(EVOLVING), data, grids=[8, 16], rounds=3)
    assert found["equal_resolution"] == {"speed_up": 24.0}
    assert [(entry["resolution"], entry["speed_up"]) for entry in found["solver"]] == [
        ([8], 2),
        ([16], 6),
        ([64], 24),
    ]
    errors = [entry["error"] for entry in found["solver"]]
    assert errors[0] > errors[1] > errors[2] == 0.0


def test_a_model_that_sleeps_is_slower_than_the_solver():
    data = generate("diffusion_reaction1d", 2, 64, seed=0, frames=11)
    slow = speed_up(Slow(EVOLVING, pause=0.1), data, grids=[16], rounds=1)
    assert 0 <= slow["equal_resolution"]["speed_up"] < 1
    assert slow["rollout"]["seconds"] >= 0.1 * slow["horizon"]
    assert slow["threads"] == torch.get_num_threads()


def test_the_solver_wrapped_as_a_model_has_no_error_and_gains_nothing():
    data = generate("darcy2d", 2, 32, seed=4)
    told: list[tuple[int, int]] = []
    found = speed_up(Solver("darcy2d", STEADY), data, grids=[8, 16], rounds=3, progress=lambda *at: told.append(at))
    assert found["rollout"]["error"] < 1e-6
    assert found["equal_error"]["resolution"] == [32, 32]  # no coarser grid has so small an error
    assert found["equal_error"]["speed_up"] == found["equal_resolution"]["speed_up"]
    assert 0.05 < found["equal_resolution"]["speed_up"] < 20
    assert told[-1] == (16, 16)
    worse = speed_up(Solver("darcy2d", STEADY, factor=1.5), data, grids=[8, 16], rounds=1)
    assert worse["rollout"]["error"] == pytest.approx(0.5, rel=1e-5)
    assert worse["equal_error"]["bound"] == "at most"


def test_a_coarser_gas_solver_is_really_coarser():
    data = generate("cns1d", 2, 16, seed=0, frames=3, params={"min_cells": 32})
    truth = torch.as_tensor(np.asarray(data.values))
    errors = [SolverRun(data, [0, 1], cells).error(truth, [0, 1, 2], 3, data.grid) for cells in (4, 8, 16)]
    assert errors[0] > errors[1] > 0.01
    assert errors[2] == 0.0
    assert SolverRun(data, [0], 8).recipe.parameters.min_cells == 16
    torch.testing.assert_close(SolverRun(data, [1], 16).frames(3)(), truth[1:], rtol=1e-9, atol=1e-9)


def test_what_was_not_generated_cannot_be_compared_and_nonsense_is_refused():
    data = generate("darcy2d", 2, 16, seed=4)
    with pytest.raises(ConfigError, match="not known how"):
        speed_up(Scaled(STEADY), replace(data, origin={}))
    with pytest.raises(ConfigError, match="from 4 to 15"):
        speed_up(Scaled(STEADY), data, grids=[16])
    with pytest.raises(ConfigError, match="at least one round"):
        rollout_cost(Scaled(STEADY), data, rounds=0)
