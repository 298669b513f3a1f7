"""The tasks are those of the paper."""

from __future__ import annotations

import pytest

from spectrakan.data.catalog import TASKS, equation_of, task
from spectrakan.data.climate import load_climate
from spectrakan.errors import ConfigError

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
    entry = task(name)
    found = (entry.mapping, entry.resolution, entry.frames, entry.history, entry.horizon)
    assert found == PAPER[name]
    assert entry.name == name
    assert set(TASKS) == set(PAPER)


def test_the_horizon_ends_where_the_frames_or_the_scores_end():
    for entry in TASKS.values():
        assert entry.steady or entry.history + entry.horizon <= entry.frames
    droplet = equation_of("droplet2d")
    assert droplet.times[0] == 0.002
    assert task("droplet2d").scored_times == tuple(droplet.times[frame] for frame in (11, 16, 21, 26, 31))


def test_climate_says_what_its_file_holds():
    days, entry = load_climate(), task("climate2d")
    assert (days.fields, days.input_fields, days.grid.shape) == (
        entry.fields, entry.input_fields, entry.resolution
    )  # fmt: skip
    assert entry.split.time_ordered


def test_unknown_names_hear_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'darcy2d'"):
        task("darcy")
    with pytest.raises(ConfigError, match="'climate2d' has no solver"):
        equation_of("climate2d")
