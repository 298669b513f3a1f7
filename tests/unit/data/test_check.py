"""A health report finds what is wrong, and where."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from spectrakan.data import load_dataset, write_dataset
from spectrakan.data.check import check_dataset, find_leakage
from spectrakan.data.generate import generate, solve
from spectrakan.data.split import Split, SplitSettings, duplicate_groups, split_trajectories
from spectrakan.errors import ConfigError
from spectrakan.fields import FieldSpec, Grid, Trajectories


def water(samples: int = 12, frames: int = 6) -> Trajectories:
    return generate("shallow_water2d", samples, resolution=8, frames=frames)


def test_a_good_set_has_no_complaints():
    health = check_dataset(water())
    assert health.problems == ()
    assert health.warnings == ()
    assert health.samples == 12
    assert health.facts["frames"] == "6, from t = 0 to 0.05"
    assert health.distinct == 12
    heights = next(entry for entry in health.ranges if entry.field.name == "height")
    stored = water().values[..., 0]
    assert (heights.minimum, heights.maximum) == (stored.min(), stored.max())
    assert heights.mean == pytest.approx(stored.mean(), rel=1e-12)
    json.dumps(asdict(health))


def test_bad_numbers_are_found_at_their_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("spectrakan.fields.trajectories.BLOCK_BYTES", 24000)
    made = water()
    values = np.array(made.values)
    values[7, 3, 2, 5, 1] = np.nan
    values[9, 0, 0, 7, 0] = -np.inf
    health = check_dataset(replace(made, values=values))
    assert health.bad_numbers == 2
    assert list(health.bad_places) == [
        "nan in values: sample 7, frame 3, cell (2, 5), velocity_x",
        "-inf in values: sample 9, frame 0, cell (0, 7), height",
    ]
    assert "sample 7, frame 3" in health.problems[0]
    height = health.ranges[0]
    assert height.minimum is not None
    assert np.isfinite(height.minimum)


def test_bad_numbers_of_inputs_and_parameters_are_found_too():
    made = generate("darcy2d", 3, resolution=8, params={"beta": (1.0, 2.0)})
    inputs, params = np.array(made.inputs), np.array(made.params)
    inputs[1, 0, 4, 2, 0] = np.inf
    params[2, 0] = np.nan
    health = check_dataset(replace(made, inputs=inputs, params=params))
    assert health.bad_places == (
        "inf in inputs: sample 1, frame 0, cell (4, 2), coefficient",
        "nan in params: sample 2, beta",
    )


def test_only_the_first_places_are_listed_but_all_are_counted():
    values = np.full((3, 2, 8, 1), np.nan)
    made = Trajectories(values, Grid.uniform((8,)), np.arange(2.0), (FieldSpec("u"),))
    health = check_dataset(made)
    assert health.bad_numbers == 48
    assert len(health.bad_places) == 10
    assert health.ranges[0].minimum is None


def test_constant_and_nonpositive_fields_are_noticed():
    values = np.ones((2, 3, 8, 2))
    values[0, 0, 0, 1] = -2.0
    fields = (FieldSpec("ground"), FieldSpec("depth", positive=True))
    made = Trajectories(values, Grid.uniform((8,)), np.array([0.0, 1.0, 2.0]), fields)
    assert check_dataset(made).warnings[:2] == (
        "field 'ground' is 1 everywhere",
        "field 'depth' should be positive but reaches -2",
    )


def noise(samples: int = 5, frames: int = 4, cells: int = 8) -> Trajectories:
    values = np.random.default_rng(0).standard_normal((samples, frames, cells, 1))
    return Trajectories(values, Grid.uniform((cells,)), np.arange(float(frames)), (FieldSpec("u"),))


def with_nan_params() -> Trajectories:
    return replace(noise(), params=np.array([[1.0], [2.0], [np.nan], [4.0], [5.0]]), param_names=("Re",))


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (noise(samples=2), "2 distinct trajectories cannot be split"),
        (replace(noise(), values=np.ones((5, 4, 8, 1))), "1 distinct trajectories cannot be split"),
        (noise(frames=1), "one frame and no separate inputs"),
        (noise(cells=3), "3 cells: every axis needs at least 4"),
        (with_nan_params(), "1 numbers are NaN or infinite, the first is nan in params: sample 2"),
    ],
)
def test_what_training_would_refuse_is_a_problem(made: Trajectories, problem: str):
    assert check_dataset(noise()).problems == ()
    assert [text for text in check_dataset(made).problems if problem in text]


def test_one_long_trajectory_can_be_split_in_time():
    health = check_dataset(noise(samples=1, frames=60))
    assert health.problems == ()
    assert "only a split in time (data.split.by=time) is possible" in health.warnings[0]
    assert split_trajectories(noise(samples=1, frames=60), SplitSettings(by="time")).frames["train"][1] == 48


def test_a_given_split_decides_how_many_samples_are_needed():
    split = Split(train=(0,), test=(1,))
    assert check_dataset(noise(samples=2), split).problems == ()


@pytest.mark.parametrize("samples", [2, 3])
def test_training_refuses_exactly_the_sets_that_the_check_calls_too_small(samples: int):
    made = noise(samples=samples)
    if check_dataset(made).problems:
        with pytest.raises(ConfigError, match="distinct trajectories"):
            split_trajectories(made)
    else:
        assert len(split_trajectories(made).train) == 1


def pdebench_dams(count: int, size: int) -> Trajectories:
    """PDEBench's dams: in the middle, 2 inside and 1 outside, the radius drawn with the number of the sample."""
    grid = Grid.uniform((size, size), ((-2.5, 2.5), (-2.5, 2.5)), ("outflow", "outflow"))
    x, y = (axis.numpy() for axis in grid.coordinates)
    radius = np.array([np.random.default_rng(sample).uniform(0.3, 0.7) for sample in range(count)])
    inside = np.hypot(x[:, None], y[None, :]) <= radius[:, None, None]
    values = np.where(inside, 2.0, 1.0).astype(np.float32)[:, None, ..., None]
    return Trajectories(values, grid, np.zeros(1), (FieldSpec("height", positive=True),), name="dams")


def test_the_copies_of_pdebench_dams_are_found_in_a_file_of_its_1000_radii(tmp_path: Path):
    path = write_dataset(tmp_path / "dams.h5", pdebench_dams(1000, 64))
    health = check_dataset(load_dataset(path))
    assert health.distinct == 24  # facts of the family on 64 x 64 cells
    assert sum(len(group) for group in health.copies) + (24 - len(health.copies)) == 1000
    assert "976 trajectories are copies of others" in " ".join(health.warnings)
    customary = Split(train=tuple(range(100, 1000)), test=tuple(range(100)))
    assert check_dataset(load_dataset(path), customary).leaked == tuple(range(100))


def test_pdebench_published_81_distinct_dams():
    groups = duplicate_groups(pdebench_dams(1000, 128))
    assert len(groups) == 81
    customary = Split(train=tuple(range(100, 1000)), test=tuple(range(100)))
    assert len(find_leakage(groups, customary)) == 100


def test_copies_stay_copies_through_the_solver_and_our_split_keeps_them_together():
    start = np.asarray(pdebench_dams(60, 16).values)[:, 0]
    fields = np.concatenate([start, np.zeros_like(start), np.zeros_like(start)], axis=-1)
    made = generate("shallow_water2d", 60, resolution=16, frames=4)
    made = replace(made, values=solve("shallow_water2d", fields, made.times.tolist()).numpy())
    groups = duplicate_groups(made)
    starts = duplicate_groups(replace(made, values=made.values[:, :1], times=made.times[:1]))
    assert groups == starts
    assert 2 < len(groups) < 60
    split = split_trajectories(made, SplitSettings(), seed=1)
    health = check_dataset(made, split)
    assert health.leaked == ()
    assert health.problems == ()
    mixed = Split(train=tuple(range(30)), test=tuple(range(30, 60)))
    leaky = check_dataset(made, mixed)
    assert leaky.leaked
    assert "copies of training samples" in leaky.problems[0]


def test_parts_of_a_split_in_time_share_their_samples():
    data = generate("diffusion_reaction1d", 3, resolution=16, frames=40)
    split = split_trajectories(data, SplitSettings(by="time"))
    health = check_dataset(data, split)
    assert health.leaked is None
    assert health.problems == ()


def test_a_split_of_another_file_is_refused():
    with pytest.raises(ConfigError, match="names sample 5, the set ends at 2"):
        find_leakage(((0,), (1,), (2,)), Split(train=(0,), test=(5,)))


def test_stored_reference_files_are_healthy(reference_data: Path):
    folder = reference_data / "pdebench_layout"
    for name in ("2D_DarcyFlow_beta1.0_Train.hdf5", "2D_rdb_NA_NA.h5", "ReacDiff_Nu0.5_Rho1.0.hdf5"):
        assert check_dataset(load_dataset(folder / name)).problems == ()
