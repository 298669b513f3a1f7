"""The campaign as a user starts it: all tables at the smallest scale, stopped, continued, failing and going on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import experiments
import spectrakan
from experiments.scales import DEVELOPMENT_SEED, SCALES, TEST_SEED
from spectrakan.runs import read_record

TABLES = ("main", "ablation", "tokens", "data-efficiency", "unseen")
"""What the others are made from; figures have tests of their own."""
COMMAND = [sys.executable, "-m", "experiments"]
# The package under test, also where another one is installed.
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join(str(Path(module.__file__).parents[1]) for module in (spectrakan, experiments)),
    "OMP_NUM_THREADS": "1",
}


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every cell of scale smoke, in one process."""
    folder = tmp_path_factory.mktemp("campaign")
    done = run(*TABLES, "--scale", "smoke", "--jobs", "0", "--docs", "page.md", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder


def records(folder: Path, table: str) -> dict[str, dict]:
    return {path.stem: read_record(path) for path in sorted((folder / "results/smoke" / table).glob("*.json"))}


def test_a_rerun_finds_everything_done(campaign: Path):
    before = {path: path.stat().st_mtime_ns for path in (campaign / "results").rglob("*.json")}
    again = run(*TABLES, "--scale", "smoke", "--jobs", "0", folder=campaign)
    assert again.returncode == 0, again.stderr
    assert "done" not in again.stdout
    assert {path: path.stat().st_mtime_ns for path in (campaign / "results").rglob("*.json")} == before


def test_records_hold_what_the_tables_need(campaign: Path):
    main = records(campaign, "main")
    found = main["shallow_water2d-spectrakan-default-s0"]
    assert found["metrics"].keys() >= {"rmse", "nrmse", "max_error", "crmse", "brmse", "frmse_low", "relative_l2"}
    assert list(found["metrics_per_field"]) == ["height"]
    details = found["details"]
    assert set(details["resolutions"]) == {"8", "32"}
    assert len(details["metrics_per_frame"]["relative_l2"]) == found["horizon"] == 2
    assert details["stability"]["horizon"] == 10
    assert details["tails"]["rmse"] == pytest.approx(found["metrics"]["rmse"], rel=1e-4)
    assert details["tails"]["median"] <= details["tails"]["percentile_99"] == details["tails"]["worst"]
    assert details["validation"]["metrics"]["rmse"] > 0
    assert main["droplet2d-fno-default-s0"]["details"]["scored_times"]["times"] == [0.11, 0.16, 0.21, 0.26, 0.31]


def test_all_models_of_a_case_were_treated_alike(campaign: Path):
    for case in SCALES["smoke"].main_cases:
        mine = [record for name, record in records(campaign, "main").items() if name.startswith(f"{case}-")]
        trained = [record for record in mine if record["details"]["steps"]]
        assert len(trained) >= 3
        assert len({record["details"]["steps"] for record in trained}) == 1
        assert len({record["provenance"]["data_sha256"] for record in mine}) == 1
        assert len({record["details"]["test_sha256"] for record in mine}) == 1
        trainings = [{**record["config"]["training"], "learning_rate": 0} for record in mine]
        assert all(training == trainings[0] for training in trainings)


def test_unseen_problems_are_trained_and_judged(campaign: Path):
    found = records(campaign, "unseen")
    cases = ("kuramoto_sivashinsky1d", "gray_scott2d", "vorticity2d")
    models = [(model, seed) for model in ("spectrakan", "fno", "ffno") for seed in (0, 1)]
    trivial = [("persistence", 0), ("climatology", 0)]
    assert set(found) == {f"{case}-{model}-default-s{seed}" for case in cases for model, seed in (*models, *trivial)}
    for name, record in found.items():
        assert record["metrics"]["rmse"] > 0, name
        assert record["horizon"] == 3
    page = (campaign / "page.md").read_text()
    for case in cases:
        (line,) = [line for line in page.splitlines() if line.startswith(f"{case}: ")]
        assert "of FNO (p = " in line or "of FFNO (p = " in line


def test_development_samples_are_scored_without_a_look_at_the_test(campaign: Path):
    ledger = (campaign / "results/smoke/ledger.jsonl").read_text()
    done = run("development", "--scale", "smoke", "--model", "spectrakan", "--case", "darcy2d", folder=campaign)
    assert done.returncode == 0, done.stderr
    found = json.loads((campaign / "results/smoke/development.json").read_text())["darcy2d"]
    assert found["seed"] == DEVELOPMENT_SEED != TEST_SEED
    assert set(found["runs"]) == {"spectrakan-default-s0", "spectrakan-default-s1", "spectrakan-paper-s0"}
    tested = records(campaign, "main")["darcy2d-spectrakan-default-s0"]["metrics"]["rmse"]
    assert 0 < found["runs"]["spectrakan-default-s0"]["rmse"] != tested
    assert (campaign / "results/smoke/ledger.jsonl").read_text() == ledger


def test_tests_were_made_once_and_read_once_a_cell(campaign: Path):
    lines = [json.loads(line) for line in (campaign / "results/smoke/ledger.jsonl").read_text().splitlines()]
    made = [line["set"] for line in lines if line["event"] == "generated"]
    assert len(made) == len(set(made))
    assert all(line["seed"] == TEST_SEED for line in lines if line["event"] == "generated")
    read = [(line["set"], line["reader"]) for line in lines if line["event"] == "read"]
    assert len(read) == len(set(read))


def test_rates_are_bracketed_without_the_test(tmp_path: Path):
    words = ("rates", "--scale", "smoke", "--task", "darcy2d", "--model", "fno", "--jobs", "0")
    done = run(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = records(tmp_path, "rates")
    assert {"darcy2d-fno-default-s0-lr0.001", "darcy2d-fno-default-s0-lr0.004"} < found.keys(), "and one beyond"
    assert not any(record["metrics"] for record in found.values())
    assert all(record["details"]["validation"]["metrics"]["relative_l2"] > 0 for record in found.values())
    assert not (tmp_path / "results/smoke/ledger.jsonl").exists()


def test_no_record_names_a_place(campaign: Path):
    for path in (campaign / "results").glob("smoke/**/*.json"):
        assert str(campaign) not in path.read_text(), path


def test_the_page_has_every_section(campaign: Path):
    page = (campaign / "page.md").read_text()
    for title in (
        "Main table",
        "Falling droplet",
        "Ablation: token",
        "Other resolutions",
        "Appendix",
        "Data efficiency",
        "Out of the box",
    ):
        assert f"## {title}\n" in page


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (("--task", "darcy3d"), "darcy2d"),
        (("--model", "fnno"), "fno"),
        (("abblation",), "ablation"),
        (("--validation-only", "model.widht=3"), "width"),
    ],
)
def test_an_unknown_name_is_one_line_and_exit_code_2(words: tuple[str, ...], nearest: str, tmp_path: Path):
    failed = run(*words, "--scale", "smoke", folder=tmp_path)
    assert failed.returncode == 2
    assert failed.stderr.startswith("error: ")
    assert words[-1].removesuffix("=3").removeprefix("model.") in failed.stderr
    assert f"did you mean '{nearest}'?" in failed.stderr
    assert list(tmp_path.iterdir()) == []


def test_trials_read_no_test_and_failures_stop_nobody(tmp_path: Path):
    tried = run(
        "--validation-only", "--scale", "smoke", "--task", "darcy2d", "--task", "droplet2d", "--model", "fno",
        "--jobs", "2", "--label", "odd", "model.multiplicative_readout=true", folder=tmp_path,
    )  # fmt: skip
    assert tried.returncode == 1
    assert "1 cells failed: darcy2d-fno-default-s0-odd" in tried.stderr, "a steady output has no last frame"
    (record,) = (tmp_path / "results/smoke/search").glob("*.json")
    found = read_record(record)
    assert found["metrics"] == {}
    assert found["config"]["model"]["multiplicative_readout"] is True
    assert found["details"]["overrides"] == ["model.multiplicative_readout=true"]
    assert found["details"]["validation"]["metrics"]["rmse"] > 0
    assert not (tmp_path / "results/smoke/ledger.jsonl").exists()


def test_cells_can_be_trained_before_the_test_is_read(tmp_path: Path):
    """The weights wait in the cache; the run that scores them trains nothing."""
    words = ("main", "--scale", "smoke", "--task", "darcy2d", "--model", "fno", "--seed", "0", "--jobs", "0")
    trained = run(*words, "--train-only", folder=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "darcy2d-fno-default-s0: trained" in trained.stderr
    assert not records(tmp_path, "main")
    assert not (tmp_path / "results/smoke/ledger.jsonl").exists()
    weights = list((tmp_path / "results/.cache/runs/smoke/main").rglob("*.safetensors"))
    before = {path: path.stat().st_mtime_ns for path in weights}
    assert before
    scored = run(*words, folder=tmp_path)
    assert scored.returncode == 0, scored.stderr
    record = records(tmp_path, "main")["darcy2d-fno-default-s0"]
    assert record["metrics"]["rmse"] > 0
    assert record["train_seconds"] > 0
    best = [path for path in weights if path.exists()]
    assert best
    assert {path: path.stat().st_mtime_ns for path in best} == {path: before[path] for path in best}


def test_a_campaign_that_is_stopped_goes_on(tmp_path: Path):
    words = ["--validation-only", "--scale", "smoke", "--task", "darcy2d", "--model", "fno", "--label", "long"]
    words += ["training.epochs=60", "runtime.checkpoint_steps=5"]
    process = subprocess.Popen([*COMMAND, *words], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE)
    checkpoints = tmp_path / "results/.cache/runs/smoke/search"
    deadline = time.monotonic() + 120
    while not list(checkpoints.glob("*/checkpoints/last/*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert not list((tmp_path / "results/smoke/search").glob("*.json"))
    (folder,) = checkpoints.iterdir()
    reached = json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["step"]
    assert 0 < reached < 60 * 3
    again = run(*words, folder=tmp_path)
    assert again.returncode == 0, again.stderr
    (record,) = (tmp_path / "results/smoke/search").glob("*.json")
    assert read_record(record)["details"]["steps"] == 60 * 3
    assert len(list(checkpoints.iterdir())) == 1, "the same run, not a new one"
