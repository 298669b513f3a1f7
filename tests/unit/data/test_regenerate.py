"""Generated samples are found again on other grids and at later times; others are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spectrakan.data.files import every_cell, load_dataset, write_dataset
from spectrakan.data.generate import generate
from spectrakan.data.problems import PROBLEMS
from spectrakan.data.regenerate import regenerate
from spectrakan.errors import ConfigError

SOLVED = [name for name, task in PROBLEMS.items() if task.equation is not None]


@pytest.mark.parametrize("task", SOLVED)
def test_every_family_draws_functions_before_cells(task):
    """Averages of a fine draw approach the coarse draw: the functions are the same."""
    coarse = generate(task, 3, 32, seed=5, frames=None if PROBLEMS[task].steady else 3)
    fine = regenerate(coarse, resolution=128)
    start = fine.values if fine.inputs is None else fine.inputs
    averaged = np.asarray(start[:, :1])
    for axis in range(2, 2 + len(coarse.grid.shape)):
        shape = (*averaged.shape[:axis], 32, 4, *averaged.shape[axis + 1 :])
        averaged = averaged.reshape(shape).mean(axis + 1)
    own = np.asarray(coarse.values if coarse.inputs is None else coarse.inputs)[:, :1]
    far = own[[1, 2, 0]]
    assert np.abs(averaged - own).mean() < 0.15 * np.abs(far - own).mean()


def test_longer_trajectories_begin_with_the_shorter_ones():
    short = generate("droplet2d", 2, 16, seed=1, frames=4)
    longer = regenerate(short, frames=9)
    np.testing.assert_array_equal(np.asarray(longer.values)[:, :4], short.values)
    assert longer.times[:4].tolist() == short.times.tolist()


def test_parameters_and_their_ranges_are_kept():
    made = generate("diffusion_reaction1d", 3, 32, seed=2, frames=3, params={"nu": (0.1, 1.0), "rho": 2.0})
    again = regenerate(made, resolution=64)
    np.testing.assert_array_equal(again.params, made.params)
    assert again.constants["rho"] == 2.0
    assert again.grid.shape == (64,)


def test_a_file_keeps_where_its_samples_came_from(tmp_path):
    made = generate("diffusion_reaction1d", 2, 32, seed=7, frames=3, params={"nu": (np.float64(0.1), 1.0)})
    found = load_dataset(write_dataset(tmp_path / "set.h5", made, dtype=np.float32))
    again = regenerate(found, resolution=32)
    np.testing.assert_allclose(np.asarray(again.values), made.values, rtol=1e-12)
    with pytest.raises(ConfigError, match="not known how"):
        regenerate(every_cell(load_dataset(tmp_path / "set.h5"), 2))


def test_foreign_and_changed_samples_are_refused():
    made = generate("darcy2d", 2, 8, seed=3)
    with pytest.raises(ConfigError, match="spectrakan generate"):
        regenerate(replace(made, origin={}), resolution=16)
    with pytest.raises(ConfigError, match="not what their seed"):
        regenerate(replace(made, values=np.asarray(made.values) + 1.0), resolution=16)
    with pytest.raises(ConfigError, match="not what their seed"):
        regenerate(replace(made, origin={"seed": 4, "params": {}}), resolution=16)
