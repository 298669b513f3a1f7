"""The data commands: what they print, write and refuse."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from spectrakan.cli.app import build_app
from spectrakan.data import load_dataset, write_dataset
from spectrakan.data.formats.mapping import MAPPING_HELP
from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.training.display import progress_bar


def run(*words: str) -> Result:
    return CliRunner().invoke(build_app(), list(words))


def test_tasks_lists_all_and_explains_one():
    table = run("tasks")
    assert table.exit_code == 0
    for name in ("cns1d", "diffusion_reaction1d", "darcy2d", "shallow_water2d", "droplet2d", "climate2d"):
        assert name in table.output
    assert "coefficient -> pressure" in table.output
    one = run("tasks", "darcy2d")
    assert "beta = 1.0" in one.output
    assert "split     train 0.8, validation 0.1, test 0.1, by trajectory" in one.output
    assert "gap 10" in run("tasks", "climate2d").output
    assert isinstance(run("tasks", "darcy").exception, ConfigError)


def test_generate_writes_what_the_library_makes(tmp_path: Path):
    path = tmp_path / "made.h5"
    words = [
        "generate",
        "darcy2d",
        "-n",
        "3",
        "--resolution",
        "8",
        "--seed",
        "2",
        "-o",
        str(path),
        "--double",
    ]
    result = run(*words, "beta=2.0")
    assert result.exit_code == 0, result.output
    assert f"{path}: 3 samples of darcy2d" in result.output
    stored, made = load_dataset(path), generate("darcy2d", 3, 8, seed=2, params={"beta": 2.0})
    assert np.array_equal(np.asarray(stored.values), made.values)
    assert stored.inputs is not None
    assert np.array_equal(np.asarray(stored.inputs), np.asarray(made.inputs))
    assert stored.constants["beta"] == 2.0
    assert "solving darcy2d: 3 of 3" in result.stderr
    again = run(*words)
    assert isinstance(again.exception, ConfigError)
    assert "exists already" in str(again.exception)
    assert run(*words, "--force").exit_code == 0


def test_generate_stores_single_precision_and_drawn_parameters(tmp_path: Path):
    path = tmp_path / "made.hdf5"
    run("generate", "darcy2d", "-n", "2", "--resolution", "8", "-o", str(path), "beta=[1.0, 2.0]")
    stored = load_dataset(path)
    assert stored.values.dtype == np.float32
    assert stored.param_names == ("beta",)


def test_generate_writes_the_layout_of_the_well_and_check_reads_it(tmp_path: Path):
    path = tmp_path / "made.hdf5"
    made = run("generate", "droplet2d", "-n", "2", "--resolution", "8", "--layout", "the_well", "-o", str(path))
    assert made.exit_code == 0, made.output
    with h5py.File(path) as file:
        assert file["t1_fields/velocity"].shape == (2, 101, 8, 8, 2)
        assert file["boundary_conditions/x_wall"].attrs["bc_type"] == "WALL"
    result = run("check", str(path))
    assert result.exit_code == 0, result.output
    for words in ("rho", "velocity_x", "velocity_y", "wall", "distinct     2 of 2 trajectories"):
        assert words in result.output
    with h5py.File(path, "r+") as file:
        file["t0_fields/rho"][1, 7, 3, 4] = np.inf
    result = run("check", str(path))
    assert result.exit_code == 1
    assert "inf in values: sample 1, frame 7, cell (3, 4), rho" in result.output


def test_generate_refuses_before_it_works(tmp_path: Path):
    for words, reason in (
        (["darcy", "-o", "x.h5"], "did you mean 'darcy2d'"),
        (["darcy2d", "betta=1", "-o", "x.h5"], "did you mean 'beta'"),
        (["darcy2d", "-o", "x.txt"], "unknown ending"),
        (["climate2d", "-o", "x.h5"], "read from a file"),
    ):
        problem = run("generate", *words[:-1], str(tmp_path / words[-1])).exception
        assert isinstance(problem, ConfigError)
        assert reason in str(problem)
    assert list(tmp_path.iterdir()) == []


def test_generate_looks_for_room_first(tmp_path: Path):
    problem = run("generate", "shallow_water2d", "-n", "1000000000", "-o", str(tmp_path / "new" / "x.h5")).exception
    assert isinstance(problem, ConfigError)
    assert "needs 4.96e+06 GB" in str(problem)
    assert list(tmp_path.iterdir()) == []


def test_download_lists_names_and_refuses_strangers(tmp_path: Path):
    listed = run("download")
    assert "2D_rdb_NA_NA.h5" in listed.output
    assert len(listed.output.splitlines()) == 12
    assert isinstance(run("download", "../x", "-d", str(tmp_path)).exception, ConfigError)
    problem = run("download", "2D_rdb_NA_NA.h5", "-d", str(tmp_path), "--address", "ftp://x/").exception
    assert "http or https" in str(problem)


def test_check_tells_health_by_words_and_exit_code(tmp_path: Path):
    made = generate("darcy2d", 4, resolution=8)
    good = write_dataset(tmp_path / "good.h5", made)
    result = run("check", str(good))
    assert result.exit_code == 0, result.output
    assert "fit to learn from" in result.output
    assert "distinct     4 of 4 trajectories" in result.output
    values = np.array(made.values)
    values[2, 0, 1, 5, 0] = np.nan
    bad = write_dataset(tmp_path / "bad.h5", replace(made, values=values))
    result = run("check", str(bad))
    assert result.exit_code == 1
    assert "PROBLEM" in result.output
    assert "nan in values: sample 2, frame 0, cell (1, 5), pressure" in result.output
    report = json.loads(run("check", str(bad), "--json").stdout)
    assert report["bad_numbers"] == 1
    assert "cell (1, 5)" in report["bad_places"][0]


def test_check_reads_a_split_and_finds_its_leak(tmp_path: Path):
    made = generate("shallow_water2d", 8, resolution=8, frames=3)
    data = write_dataset(tmp_path / "dams.h5", made.select([0, 1, 2, 3, 0, 1, 2, 3]))
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"split": {"train": [0, 1, 2, 3], "test": [4, 5, 6, 7]}}))
    result = run("check", str(data), "--split", str(split))
    assert result.exit_code == 1
    assert "copies of training samples" in result.output
    split.write_text("[1, 2]")
    assert isinstance(run("check", str(data), "--split", str(split)).exception, DataFormatError)
    split.write_text("{")
    assert isinstance(run("check", str(data), "--split", str(split)).exception, DataFormatError)


def test_check_explains_mappings_without_a_file():
    result = run("check", "--explain-mapping")
    assert result.exit_code == 0
    assert result.output == MAPPING_HELP


def test_check_takes_the_data_of_a_problem():
    found = run("check", "--problem", "climate2d")
    assert found.exit_code == 0
    assert "730 of 730 trajectories" in found.output
    refused = run("check")
    assert refused.exit_code != 0
    assert "name a data file or a run folder" in str(refused.exception)


def test_check_is_told_what_a_foreign_file_means(tmp_path: Path):
    made = generate("darcy2d", 3, resolution=8)
    path = tmp_path / "mine.npz"
    np.savez(path, k=np.asarray(made.inputs)[:, 0, ..., 0], p=made.values[:, 0, ..., 0])
    rules = tmp_path / "mine.yaml"
    rules.write_text(
        "values: [{array: p, axes: [sample, x, y], fields: [pressure]}]\n"
        "inputs: [{array: k, axes: [sample, x, y], fields: [coefficient], positive: [coefficient]}]\n"
    )
    result = run("check", str(path), "--mapping", str(rules), "--problem", "darcy2d")
    assert result.exit_code == 0, (result.output, result.exception)
    assert "problem      darcy2d" in result.output


@pytest.mark.parametrize("command", ["tasks", "generate", "download", "check"])
def test_help_teaches_by_examples(command: str):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert result.output.count(f"spectrakan {command}") >= 3


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("working") as progress:
        progress(3, 4)
    assert "3/4" in capfd.readouterr().err


def test_progress_is_few_lines_elsewhere(capsys: pytest.CaptureFixture[str]):
    with progress_bar("reading") as progress:
        for done in range(1001):
            progress(done, 1000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1] == "reading: 1000 of 1000"
