"""Frames that follow one another have no defect; wrong frames are found at their place."""

from __future__ import annotations

import pytest
import torch

from spectrakan.errors import ShapeError
from spectrakan.pde.catalog import EQUATIONS
from spectrakan.pde.defect import one_step_defect


@pytest.mark.parametrize(("name", "floor"), [("cns1d", 0.04), ("diffusion_reaction1d", 1e-7)])
def test_own_solutions_have_a_small_defect_and_planted_frames_a_large_one(name, floor, generator):
    equation = EQUATIONS[name]
    parameters = equation.parameters()
    initial = equation.sample(2, (64,), parameters, generator)
    times = [0.0, 0.05, 0.1, 0.12]
    frames = equation.solve(initial, times, parameters)
    good = one_step_defect(equation, frames, times, parameters)
    assert good.shape == (2, 3)
    assert float(good.max()) < floor
    frames[1, 2] = frames[1, 2].roll(16, 0)
    bad = one_step_defect(equation, frames, times, parameters)
    assert float((bad[0] - good[0]).abs().max()) < 1e-9
    assert float(bad[1, 0] - good[1, 0]) == pytest.approx(0.0, abs=1e-9)
    assert float(bad[1, 1:].min()) > 3 * float(good.max())


def test_a_file_of_another_viscosity_stands_out(generator):
    equation = EQUATIONS["diffusion_reaction1d"]
    frames = equation.solve(
        equation.sample(2, (64,), equation.parameters(), generator), [0.0, 0.02, 0.04], equation.parameters()
    )
    other = one_step_defect(equation, frames, [0.0, 0.02, 0.04], equation.parameters(nu=0.4))
    assert float(other[:, 0].min()) > 1e-3


def test_frames_and_times_must_agree(generator):
    equation = EQUATIONS["cns1d"]
    with pytest.raises(ShapeError, match="2 frames or more"):
        one_step_defect(equation, torch.ones(1, 1, 8, 3), [0.0], equation.parameters())
