"""Samples of a campaign are those of the library; test samples are others, and their reading is written down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.archive import Archive
from experiments.cells import Cell, case_settings, run_settings
from experiments.datasets import Datasets, longer_frames, scored_frames
from experiments.scales import SCALES, TEST_SEED
from spectrakan.data.files import load_dataset
from spectrakan.data.generate import generate
from spectrakan.data.prepare import obtain, prepare
from spectrakan.data.problems import PROBLEMS
from spectrakan.data.split import split_trajectories
from spectrakan.errors import ConfigError


@pytest.fixture
def datasets(archive: Archive) -> Datasets:
    return Datasets(archive)


@pytest.mark.parametrize("case", SCALES["smoke"].cases)
def test_a_run_of_the_file_has_the_samples_that_training_without_it_makes(datasets: Datasets, case: str):
    cell = Cell("main", "smoke", case, "fno")
    alone = run_settings(cell).data
    file = run_settings(cell, str(datasets.training_file(cell))).data
    without, with_file = (prepare(case, data) for data in (alone, file))
    made, read = without.trajectories, with_file.trajectories
    assert np.allclose(np.asarray(read.values), made.values, atol=1e-6)
    assert np.array_equal(read.times, made.times)
    assert (read.fields, read.grid.shape) == (made.fields, made.grid.shape)
    assert with_file.split == without.split


def test_frames_fields_and_cells_are_those_of_the_preset(datasets: Datasets):
    cell = Cell("main", "smoke", "shallow_water2d", "fno")
    found = obtain(PROBLEMS["shallow_water2d"], run_settings(cell, str(datasets.training_file(cell))).data)
    solved = generate("shallow_water2d", 2, 32, seed=0, frames=23)
    means = solved.values[:, ::2, ..., :1].reshape(2, -1, 16, 2, 16, 2, 1).mean((3, 5))
    assert [spec.name for spec in found.fields] == ["height"]
    assert np.allclose(found.times, solved.times[::2])
    assert np.allclose(np.asarray(found.values[:2]), means, atol=1e-6)
    assert datasets.ledger.read() == [], "making training samples reads no test"


def test_one_file_serves_every_cell_with_the_same_samples(datasets: Datasets):
    cell = Cell("main", "smoke", "darcy2d", "fno")
    assert datasets.missing_file(cell) is not None
    path = datasets.training_file(cell)
    assert path is not None
    before = path.stat().st_mtime_ns
    fewer = replace(cell, table="data_efficiency", overrides=("data.num_samples=5",), label="n5")
    assert datasets.training_file(cell) == datasets.training_file(fewer) == path
    assert path.stat().st_mtime_ns == before
    assert datasets.missing_file(fewer) is None
    short, long = (
        Datasets(Archive(datasets.folder, datasets.folder, scale))._training(replace(cell, scale=scale))
        for scale in ("short", "long")
    )
    assert short == long, "both budgets train on the same samples"


def test_test_samples_come_from_the_reserved_seed_and_the_ledger_has_it(datasets: Datasets):
    train = np.asarray(load_dataset(datasets.training_file(Cell("main", "smoke", "darcy2d", "fno")) or "").inputs)
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


def test_scored_times_are_reached_and_steady_problems_have_no_horizon():
    droplet, flow, darcy = (case_settings("short", name).data for name in ("droplet2d", "cns1d", "darcy2d"))
    assert scored_frames(PROBLEMS["droplet2d"], droplet) == 32, "t = 0.31 is the 32nd frame"
    assert scored_frames(PROBLEMS["cns1d"], flow) == 21
    assert longer_frames(PROBLEMS["droplet2d"], droplet) == 1 + 5 * 19
    with pytest.raises(ConfigError, match="is steady"):
        longer_frames(PROBLEMS["darcy2d"], darcy)


def test_the_climate_keeps_its_reserved_days_for_the_test(tmp_path):
    archive = Archive(tmp_path, tmp_path, "short")
    cell = Cell("main", "short", "climate2d", "fno")
    assert Datasets(archive).training_file(cell) is None
    test = Datasets(archive).test("climate2d", "r")
    prepared = prepare("climate2d", run_settings(cell).data)
    theirs = split_trajectories(test.trajectories, PROBLEMS["climate2d"].split, 0)
    assert test.samples == theirs.test, "the days that `spectrakan train climate2d` tests on"
    assert prepared.parts["train"].samples == theirs.train
    assert prepared.parts["validation"].samples == theirs.validation
    assert prepared.parts["test"].samples == ()
    assert min(test.samples) - max(theirs.validation) == 11, "ten days are left out between"
