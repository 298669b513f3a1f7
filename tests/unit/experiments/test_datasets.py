"""Samples of a campaign: what is kept of them, and that test samples are others and their reading is written down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spectrakan.data.generate import generate
from spectrakan.data.load import load_dataset
from spectrakan.errors import ConfigError
from spectrakan.experiments.datasets import Datasets, longer_frames, scored_frames
from spectrakan.experiments.ledger import Ledger
from spectrakan.experiments.scales import SCALES, TEST_SEED, TRAIN_SEED


@pytest.fixture
def datasets(tmp_path: Path) -> Datasets:
    return Datasets(SCALES["smoke"], tmp_path, Ledger(tmp_path / "ledger.jsonl"))


def test_frames_and_fields_are_those_of_the_case(datasets: Datasets):
    case = datasets.scale.cases["shallow_water2d"]
    path = datasets.training_file("shallow_water2d")
    assert path is not None
    found = load_dataset(path)
    solved = generate("shallow_water2d", 2, case.solved_at, TRAIN_SEED, frames=(case.frames or 0) * case.stride)
    means = solved.values[:, :: case.stride, ..., :1].reshape(2, -1, 16, 2, 16, 2, 1).mean((3, 5))
    assert [spec.name for spec in found.fields] == ["height"]
    assert np.allclose(found.times, solved.times[:: case.stride])
    assert np.allclose(np.asarray(found.values[:2]), means, atol=1e-6)
    assert found.grid.shape == (16, 16)
    assert datasets.ledger.read() == [], "making training samples reads no test"


def test_the_same_file_is_made_once(datasets: Datasets):
    path = datasets.training_file("darcy2d")
    assert path is not None
    before = path.stat().st_mtime_ns
    assert datasets.training_file("darcy2d") == path
    assert path.stat().st_mtime_ns == before


def test_test_samples_come_from_the_reserved_seed_and_the_ledger_knows(datasets: Datasets):
    train = np.asarray(load_dataset(datasets.training_file("darcy2d") or "").inputs)
    test = datasets.test("darcy2d", "a cell")
    again = datasets.test("darcy2d", "another cell")
    expected = generate("darcy2d", 4, 16, TEST_SEED)
    assert np.allclose(test.trajectories.values, expected.values, atol=1e-6)
    assert not any(np.array_equal(x, y) for x in train for y in np.asarray(test.trajectories.inputs))
    lines = datasets.ledger.read()
    assert [line["event"] for line in lines] == ["generated", "read", "read"]
    assert lines[0]["seed"] == TEST_SEED
    assert [line.get("reader") for line in lines] == [None, "a cell", "another cell"]
    assert {line["sha256"] for line in lines} == {test.sha256} == {again.sha256}


def test_other_resolutions_and_longer_rollouts_start_from_the_same_states(datasets: Datasets):
    own = datasets.test("shallow_water2d", "r").trajectories
    finer = datasets.test("shallow_water2d", "r", resolution=32).trajectories
    longer = datasets.test("shallow_water2d", "r", longer=True).trajectories
    averaged = np.asarray(finer.values).reshape(2, -1, 16, 2, 16, 2, 1).mean((3, 5))
    assert np.allclose(averaged, np.asarray(own.values), atol=1e-6), "cell means of one solution"
    frames = len(own.times)
    assert np.allclose(np.asarray(longer.values)[0, :frames], np.asarray(own.values)[0], atol=1e-5)
    assert len(longer.times) == 10 + 5 * 2


def test_scored_times_are_reached_and_steady_tasks_have_no_horizon():
    cases = SCALES["small"].cases
    assert scored_frames(cases["droplet2d"]) == 32, "t = 0.31 is the 32nd frame"
    assert scored_frames(cases["cns1d"]) == 21
    assert longer_frames(cases["droplet2d"]) == 1 + 5 * 19
    with pytest.raises(ConfigError, match="is steady"):
        longer_frames(cases["darcy2d"])


def test_the_climate_keeps_its_last_days_for_the_test(tmp_path: Path):
    small = Datasets(SCALES["small"], tmp_path, Ledger(tmp_path / "ledger.jsonl"))
    assert small.training_file("climate2d") is None
    test = small.test("climate2d", "r")
    case = SCALES["small"].cases["climate2d"]
    assert min(test.samples) == case.num_samples + 10, "ten days are left out between"
    assert len(test.samples) == case.test_samples == 355
    assert max(test.samples) == test.trajectories.num_samples - 1
