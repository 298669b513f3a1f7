"""From a task or a file to samples, split and units in one go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectrakan.data import load, save_dataset
from spectrakan.data.generate import generate
from spectrakan.data.lazy import LazyArray
from spectrakan.data.prepare import DataSettings, prepare
from spectrakan.data.split import SplitSettings
from spectrakan.errors import ConfigError, DataFormatError


def test_a_task_is_generated_split_and_measured():
    made = prepare("darcy2d", DataSettings(num_samples=10, resolution=8, seed=4))
    expected = generate("darcy2d", 10, resolution=8, seed=4, dtype=np.float32)
    assert np.array_equal(np.asarray(made.trajectories.values), expected.values)
    assert [len(made.split.part(part)) for part in ("train", "validation", "test")] == [8, 1, 1]
    train = expected.values[list(made.split.train)]
    assert float(made.units.outputs.mean) == pytest.approx(train.mean(), rel=1e-6)
    assert float(made.units.outputs.scale) == pytest.approx(train.std(), rel=1e-6)
    assert (made.history, made.horizon, len(made.windows("train"))) == (1, 1, 8)
    again = prepare("darcy2d", DataSettings(num_samples=10, resolution=8, seed=4))
    assert again.split == made.split


def test_windows_follow_the_task_and_the_choices(tmp_path: Path):
    path = save_dataset(tmp_path / "drops.h5", generate("droplet2d", 10, resolution=8, frames=6))
    made = prepare("droplet2d", DataSettings(path=str(path), observed_fraction=0.5))
    assert (made.history, made.horizon) == (1, 5)
    whole = made.windows("train", made.horizon, "first").gather([0])
    assert whole.targets.shape[1] == 5
    assert whole.observed is not None
    assert int(whole.observed.sum()) == 32
    assert made.windows("test", 2).gather([0]).observed is None
    with pytest.raises(ConfigError, match="starts='first'"):
        made.windows("train")


@pytest.mark.parametrize("memory", [0.0, 1.0])
def test_a_file_is_strided_and_cut_to_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: float
):
    stored = generate("shallow_water2d", 8, resolution=16, frames=5)
    path = save_dataset(tmp_path / "water.h5", stored, dtype=None)
    monkeypatch.setattr(load, "HELD_BYTES", 0)
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
    assert made.units.inputs is not made.units.outputs


def test_own_shares_take_the_place_of_the_tasks():
    shares = SplitSettings(train=0.5, validation=0.0, test=0.3, calibration=0.2)
    made = prepare("darcy2d", DataSettings(num_samples=10, resolution=8, split=shares))
    assert [len(made.split.part(part)) for part in ("train", "calibration", "test")] == [5, 2, 3]


def test_bad_numbers_stop_everything_and_are_named(tmp_path: Path):
    stored = generate("darcy2d", 10, resolution=8)
    values = np.array(stored.values)
    values[6, 0, 3, 1, 0] = np.nan
    path = save_dataset(tmp_path / "bad.h5", replace(stored, values=values))
    with pytest.raises(DataFormatError, match=r"bad\.h5.*nan in values: sample 6, frame 0, cell \(3, 1\), pressure"):
        prepare("darcy2d", DataSettings(path=str(path)))


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path):
    path = str(save_dataset(tmp_path / "darcy.h5", generate("darcy2d", 4, resolution=8)))
    for task, choices, reason in (
        ("droplet2d", {}, "holds darcy2d, not droplet2d"),
        ("darcy2d", {"num_samples": 5}, "more than the 4"),
        ("darcy2d", {"resolution": 3}, "choose a resolution that divides"),
        ("darcy2d", {"resolution": 16}, "choose a resolution that divides"),
    ):
        with pytest.raises(ConfigError, match=reason):
            prepare(task, DataSettings(path=path, **choices))
