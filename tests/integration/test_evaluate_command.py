"""`spectrakan evaluate` on small trained runs: tables, records beside the run, and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectrakan.cli.compare import compare
from spectrakan.cli.evaluate import evaluate
from spectrakan.cli.predict import predict
from spectrakan.data.files import write_dataset
from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError, RunError, ShapeError
from spectrakan.evaluation import check_bands
from spectrakan.training import train

SMALL = ["model.width=8", "training.epochs=1", "runtime.threads=1"]
SHARES = [
    "data.split.train=0.3", "data.split.validation=0.1", "data.split.calibration=0.4", "data.split.test=0.2",
]  # fmt: skip


@pytest.fixture(scope="module")
def droplets(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("droplets")
    write_dataset(folder / "data.h5", generate("droplet2d", 30, 8, frames=5, dtype=np.float32))
    one_step = ["training.mode=one_step", "training.horizon=1", "training.curriculum=0.0"]
    choices = [*SMALL, *SHARES, *one_step, "model.num_modes=3", f"data.path='{folder / 'data.h5'}'"]
    train("droplet2d", model="fno", overrides=choices, output=folder / "run")
    return folder / "run"


def read(run: Path, name: str) -> dict:
    return json.loads((run / "evaluations" / f"{name}.json").read_text())


def test_scores_are_those_of_training_and_are_kept_with_their_provenance(droplets, capsys):
    evaluate(droplets)
    told = capsys.readouterr().out
    record, trained = read(droplets, "test"), json.loads((droplets / "record.json").read_text())
    assert record["metrics"]["rmse"] == pytest.approx(trained["metrics"]["rmse"], rel=1e-5)
    assert record["provenance"]["data_sha256"] == trained["provenance"]["data_sha256"]
    assert record["provenance"]["samples"] == trained["provenance"]["split"]["test"]
    assert record["config"] == trained["config"]
    assert f"fno on {len(record['provenance']['samples'])} samples, 8 x 8 cells, 4 frames ahead" in told
    row = next(line.split() for line in told.splitlines() if line.startswith("rmse"))
    assert float(row[1]) == pytest.approx(record["metrics"]["rmse"], rel=1e-3)
    assert float(row[2]) == pytest.approx(record["metrics_per_field"]["rho"]["rmse"], rel=1e-3)
    assert str(droplets / "evaluations" / "test.json") in told.replace("\n", "")


def test_every_question_has_its_table_and_its_place_in_the_record(droplets, capsys):
    evaluate(droplets, stability=True, bands=True)
    told = capsys.readouterr().out
    record = read(droplets, "test-stability-bands")
    assert f"{record['metrics_per_frame']['relative_l2'][-1]:.4g}" in told
    assert (record["stability"]["horizon"], record["stability"]["frames_with_truth"]) == (20, 20)
    assert f"{record['stability']['blow_ups']} of {record['stability']['num_samples']} samples blow up" in told
    assert record["bands"]["promised"] == 0.9
    assert "Bands from 12 trajectories" in told
    assert "Error against time" in told


def test_several_resolutions_are_solved_and_laid_side_by_side(droplets, capsys):
    evaluate(droplets, resolution=[8, 12], as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["resolution"] == [8, 8]
    assert [entry["data"] for entry in found["resolutions"]["resolutions"]] == ["given", "solved"]
    assert found["resolutions"]["resolutions"][0]["ratio"] == 1.0
    assert read(droplets, "test-8-12")["resolutions"]["trained_at"] == 8
    evaluate(droplets, resolution=[8, 12])
    assert "Trained at 8" in capsys.readouterr().out


def test_bands_on_another_grid_are_refused(droplets, tmp_path):
    write_dataset(tmp_path / "finer.h5", generate("droplet2d", 3, 16, seed=5, frames=5, dtype=np.float32))
    with pytest.raises(ConfigError, match="on the grid they were calibrated on"):
        evaluate(droplets, data=tmp_path / "finer.h5", bands=True)


def test_a_file_of_others_is_scored(droplets, tmp_path, capsys):
    foreign = generate("droplet2d", 2, 8, seed=5, frames=5, dtype=np.float32)
    np.savez(tmp_path / "others.npz", values=np.asarray(foreign.values))
    evaluate(droplets, data=tmp_path / "others.npz", horizon=3)
    assert "on 2 samples, 8 x 8 cells, 3 frames ahead" in capsys.readouterr().out
    assert read(droplets, "others-3frames")["num_samples"] == 2
    (kept,) = (droplets / "evaluations").glob("others*.json")
    compare([droplets, kept])
    assert "others" in capsys.readouterr().out, "the evaluation has the run's problem, though the file names none"


def test_a_model_of_stencils_is_refused_on_other_grids_unless_asked(tmp_path, capsys):
    choices = [*SMALL, "data.num_samples=10", "data.resolution=16", "model.width=4"]
    train("darcy2d", model="unet", overrides=choices, output=tmp_path / "run")
    with pytest.raises(ConfigError, match="unet cannot be scored zero-shot at 32: it reads 3-wide stencils"):
        evaluate(tmp_path / "run", resolution=[16, 32])
    evaluate(tmp_path / "run", resolution=[16, 32], force=True)
    assert "32 x 32" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="no calibration part"):
        evaluate(tmp_path / "run", bands=True)
    with pytest.raises(ConfigError, match="a steady one"):
        evaluate(tmp_path / "run", stability=True)


def test_what_would_fail_at_the_end_fails_before_anything_is_scored(droplets, tmp_path, monkeypatch):
    """Neither a rollout nor a solution is computed: the functions that do so are made to fail."""

    def never(*arguments, **settings):
        raise AssertionError("something was computed")

    short = generate("droplet2d", 3, 8, seed=5, frames=5, dtype=np.float32)
    write_dataset(tmp_path / "short.h5", short)
    for name in ("evaluate_model", "calibrated"):
        monkeypatch.setattr(f"spectrakan.cli.questions.{name}", never)
    with pytest.raises(ConfigError, match="a horizon of 1 to 4 is possible, got 7"):
        evaluate(droplets, data=tmp_path / "short.h5", horizon=7)
    monkeypatch.setattr("spectrakan.cli.questions.check_bands", lambda split: check_bands(split, coverage=0.99))
    with pytest.raises(ConfigError, match="at least 99 calibration trajectories, got 12"):
        evaluate(droplets, bands=True)
    monkeypatch.undo()
    renamed = replace(short, fields=tuple(replace(spec, name=f"{spec.name}_2") for spec in short.fields), name="")
    write_dataset(tmp_path / "renamed.h5", renamed)
    with pytest.raises(ShapeError, match=r"rho, velocity_x, velocity_y, the data's are rho_2"):
        evaluate(droplets, data=tmp_path / "renamed.h5")
    with pytest.raises(ShapeError, match=r"rho, velocity_x, velocity_y, the data's are rho_2"):
        predict(droplets, tmp_path / "renamed.h5", tmp_path / "out.h5")
    (tmp_path / "file").touch()
    monkeypatch.setattr("spectrakan.models.from_pretrained", never)
    with pytest.raises(RunError, match="cannot write"):
        predict(droplets, tmp_path / "short.h5", tmp_path / "file" / "out.h5")
