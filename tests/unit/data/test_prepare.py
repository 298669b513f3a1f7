"""From a problem or a file to trajectories and the parts of their split."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spectrakan.data import files, write_dataset
from spectrakan.data.generate import generate
from spectrakan.data.lazy import LazyArray
from spectrakan.data.prepare import DataSettings, prepare
from spectrakan.data.problems import Problem
from spectrakan.data.regenerate import coarsen
from spectrakan.data.split import SplitSettings
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.fields import Trajectories


def test_a_task_is_generated_split_and_measured():
    made = prepare("darcy2d", DataSettings(num_samples=10, resolution=8, seed=4))
    expected = generate("darcy2d", 10, resolution=8, seed=4, dtype=np.float32)
    assert np.array_equal(np.asarray(made.trajectories.values), expected.values)
    assert [len(made.split.part(part)) for part in ("train", "validation", "test")] == [8, 1, 1]
    assert (made.history, made.horizon, len(made.windows("train"))) == (1, 1, 8)
    again = prepare("darcy2d", DataSettings(num_samples=10, resolution=8, seed=4))
    assert again.split == made.split


def test_windows_follow_the_task_and_the_choices(tmp_path: Path):
    path = write_dataset(tmp_path / "drops.h5", generate("droplet2d", 10, resolution=8, frames=6))
    made = prepare("droplet2d", DataSettings(path=str(path)))
    assert (made.history, made.horizon) == (1, 5)
    whole = made.windows("train", made.horizon, "first").gather([0])
    assert whole.targets.shape[1] == 5
    assert len(made.windows("train")) == 5 * len(made.parts["train"].samples)


@pytest.mark.parametrize("memory", [0.0, 1.0])
def test_a_file_is_strided_and_cut_to_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: float
):
    stored = generate("shallow_water2d", 8, resolution=16, frames=5)
    path = write_dataset(tmp_path / "water.h5", stored, dtype=None)
    monkeypatch.setattr(files, "HELD_BYTES", 0)
    choices = DataSettings(
        path=str(path), num_samples=6, resolution=8, stride_time=2, history=1, horizon=2,
        memory_gigabytes=memory,
    )  # fmt: skip
    made = prepare("shallow_water2d", choices)
    assert isinstance(made.trajectories.values, LazyArray if memory == 0 else np.ndarray)
    assert np.array_equal(np.asarray(made.trajectories.values), stored.values[:6, ::2, ::2, ::2])
    assert made.horizon == 2
    batch = made.windows("train", 2).gather([0])
    sample = made.split.train[0]
    expected = stored.values[sample, 2::2, ::2, ::2].astype(np.float32)
    assert np.array_equal(batch.targets[0].numpy(), expected)


def test_climate_comes_with_the_package_and_is_cut_in_time():
    made = prepare("climate2d")
    assert made.split.train[-1] < made.split.validation[0] < made.split.test[0]
    assert made.split.test[0] - made.split.validation[-1] == 11


def test_own_shares_take_the_place_of_the_tasks():
    shares = SplitSettings(train=0.5, validation=0.0, test=0.3, calibration=0.2)
    made = prepare("darcy2d", DataSettings(num_samples=10, resolution=8, split=shares))
    assert [len(made.split.part(part)) for part in ("train", "calibration", "test")] == [5, 2, 3]


def test_bad_numbers_stop_everything_and_are_named(tmp_path: Path):
    stored = generate("darcy2d", 10, resolution=8)
    values = np.array(stored.values)
    values[6, 0, 3, 1, 0] = np.nan
    path = write_dataset(tmp_path / "bad.h5", replace(stored, values=values))
    with pytest.raises(DataFormatError, match=r"bad\.h5.*nan in values: sample 6, frame 0, cell \(3, 1\), pressure"):
        prepare("darcy2d", DataSettings(path=str(path)))


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path):
    path = str(write_dataset(tmp_path / "darcy.h5", generate("darcy2d", 4, resolution=8)))
    for task, choices, reason in (
        ("droplet2d", {}, "holds darcy2d, not droplet2d"),
        ("darcy2d", {"num_samples": 5}, "more than the 4"),
        ("darcy2d", {"resolution": 3}, "choose a resolution that divides"),
        ("darcy2d", {"resolution": 16}, "choose a resolution that divides"),
    ):
        with pytest.raises(ConfigError, match=reason):
            prepare(task, DataSettings(path=path, **choices))


def one_long_trajectory(frames: int = 100) -> Trajectories:
    values = np.arange(frames, dtype=np.float64)[None, :, None, None] * np.ones((1, frames, 8, 1))
    return Trajectories.from_arrays(values, fields=("u",), times=np.arange(frames) * 0.5, name="long")


def test_one_long_trajectory_is_cut_in_time_with_gaps():
    data = one_long_trajectory()
    split = SplitSettings(by="time", train=0.6, validation=0.2, test=0.2, gap=4)
    config = DataSettings(split=split, history=2, horizon=3)
    made = prepare(Problem.from_trajectories(data), config, data=data)
    assert made.split.frames == {"train": (0, 55), "validation": (59, 78), "test": (82, 100)}
    train = made.windows("train")
    seen = torch.cat([train.gather([i]).inputs for i in range(len(train))])
    assert (float(seen.min()), len(train)) == (0.0, 53)
    last = train.gather([len(train) - 1])
    assert float(last.targets.max()) == 54.0, "no training window reaches beyond its part"
    test = made.windows("test", 3, "first")
    assert len(test) == 3, "successive windows of five frames"
    assert test.gather([1]).inputs[0, :, 0, 0].tolist() == [87.0, 88.0]


def test_a_part_in_time_that_is_too_short_says_so():
    data = one_long_trajectory(20)
    config = DataSettings(split=SplitSettings(by="time"), history=2, horizon=5)
    with pytest.raises(ConfigError, match="the part 'validation' has 2 frames, history and horizon take 7"):
        prepare(Problem.from_trajectories(data), config, data=data)


def test_test_samples_may_lie_in_a_file_of_their_own(tmp_path: Path):
    train = write_dataset(tmp_path / "train.h5", generate("darcy2d", 10, resolution=8))
    stored = generate("darcy2d", 3, resolution=8, seed=5)
    test = write_dataset(tmp_path / "test.h5", stored)
    made = prepare("darcy2d", DataSettings(path=str(train), test_path=str(test)))
    assert [len(made.parts[name].samples) for name in ("train", "validation", "test")] == [9, 1, 3]
    found = made.windows("test").gather([0, 1, 2]).targets.numpy()
    assert np.array_equal(found[:, 0], stored.values[:, 0].astype(np.float32))
    other = write_dataset(tmp_path / "other.h5", generate("droplet2d", 3, resolution=8, frames=3))
    with pytest.raises(ConfigError, match="holds droplet2d, not darcy2d"):
        prepare("darcy2d", DataSettings(path=str(train), test_path=str(other)))


def test_generated_tests_come_from_a_seed_of_their_own():
    config = DataSettings(num_samples=6, test_samples=3, test_seed=9, resolution=8)
    made = prepare("darcy2d", config)
    expected = generate("darcy2d", 3, resolution=8, seed=9, dtype=np.float32)
    assert np.array_equal(np.asarray(made.parts["test"].trajectories.values), expected.values)
    assert made.split.test == ()


def test_only_the_frames_fields_and_cells_that_are_asked_for_are_kept():
    config = DataSettings(
        num_samples=3, resolution=8, solved_at=16, frames=3, stride_time=2, fields=("height",), history=1
    )
    made = prepare("shallow_water2d", config).trajectories
    fine = generate("shallow_water2d", 3, resolution=16, frames=5)
    means = fine.values[:, ::2, ..., :1].reshape(3, 3, 8, 2, 8, 2, 1).mean((3, 5))
    assert np.allclose(made.values, means, rtol=1e-5)
    assert (made.origin, [spec.name for spec in made.fields]) == ({}, ["height"])


def test_samples_are_brought_to_fewer_cells_piece_by_piece(monkeypatch: pytest.MonkeyPatch):
    """The fine solution of all samples is never in memory at once; inputs of a steady problem are averaged too."""
    seen: list[int] = []

    def watched(data: Trajectories, resolution: int) -> Trajectories:
        seen.append(data.num_samples)
        return coarsen(data, resolution)

    monkeypatch.setattr("spectrakan.data.prepare.coarsen", watched)
    monkeypatch.setattr("spectrakan.data.generate.CHUNK_VALUES", 2 * 16 * 16)
    made = prepare("darcy2d", DataSettings(num_samples=5, resolution=8, solved_at=16)).trajectories
    assert seen == [2, 2, 1]
    fine = generate("darcy2d", 5, resolution=16)
    assert fine.inputs is not None
    for got, expected in ((made.values, fine.values), (made.inputs, fine.inputs)):
        assert np.allclose(np.asarray(got), expected.reshape(5, 1, 8, 2, 8, 2, 1).mean((3, 5)), rtol=1e-5)


def test_windows_are_as_precise_as_the_run():
    data = Trajectories.from_arrays(1e6 + 1e-3 * np.random.default_rng(0).random((10, 4, 8, 1)), fields=("u",))
    made = prepare(Problem.from_trajectories(data), data=data, dtype=torch.float64)
    got = made.windows("train").gather([0]).inputs.numpy()[0, 0]
    assert np.array_equal(got, data.values[made.split.train[0], 0])


@pytest.mark.parametrize(
    ("spread", "refused"), [(0.0, False), (1e-11, False), (1e-3, True), (0.05, True), (10.0, False)]
)
def test_fields_that_single_precision_makes_constant_are_refused(spread: float, refused: bool):
    """Numbers near 1e5 are 0.0078 apart in float32; rounding of float64 (1e-11) is no variation."""
    numbers = np.random.default_rng(0).random((12, 4, 8, 2))
    numbers[..., 1] = 1e5 + spread * numbers[..., 1]
    data = Trajectories.from_arrays(numbers, ("u", "p"), name="offset")
    problem = Problem.from_trajectories(data)
    assert prepare(problem, data=data, dtype=torch.float64).trajectories is data
    if refused:
        with pytest.raises(ConfigError, match=r"'p' varies by .* about 100000, .* 0\.0078 apart; set runtime\."):
            prepare(problem, data=data)
    else:
        assert prepare(problem, data=data).trajectories is data
