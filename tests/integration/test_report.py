"""From trained models to figures and a page: tiny models, real commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from campaign_records import small_campaign
from page_outline import outline

import experiments
import spectrakan
from experiments.archive import Archive
from experiments.cells import Cell
from experiments.execution import run_cell
from experiments.figures import draw_figures
from experiments.forecasts import forecasts, trained_models
from experiments.gallery import read_plates
from spectrakan.errors import ConfigError


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Archive:
    """SpectraKAN and FNO, trained for a moment on four Darcy samples."""
    folder = tmp_path_factory.mktemp("campaign")
    made = Archive(folder / "results", folder / "results" / ".cache", "smoke")
    for model in ("fno", "spectrakan"):
        run_cell(Cell("main", "smoke", "darcy2d", model), made)
    return made


def command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(Path(module.__file__).parents[1]) for module in (spectrakan, experiments))
    }
    started = [sys.executable, "-m", "experiments.page_command", *words]
    return subprocess.run(started, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_forecasts_are_what_the_kept_weights_say(archive):
    models = trained_models(archive, "darcy2d")
    assert sorted(models) == ["fno", "spectrakan"]
    found = forecasts(archive, "darcy2d", models, num_samples=2)
    inputs = torch.as_tensor(np.asarray(found.trajectories.inputs[:2]), dtype=torch.float32)
    with torch.no_grad():
        predicted = models["fno"](inputs, grid=found.trajectories.grid)
    sample = found.sample(index=1)
    assert np.allclose(sample.predictions["fno"][0], predicted[1, ..., 0].numpy(), atol=1e-6)
    assert np.array_equal(sample.truth, np.asarray(found.trajectories.values[1])[..., 0])
    assert np.array_equal(sample.given, np.asarray(found.trajectories.inputs[1])[..., 0])
    assert archive.ledger.read()[-1]["reader"] == "figures", "figures read the test set in the open"


def test_figures_and_report_by_commands(archive):
    told: list[str] = []
    assert draw_figures(archive, formats=("svg",), tell=told.append) == [
        f"darcy2d-{kind}" for kind in ("maps", "spectrum", "edges", "gates", "attention")
    ] + ["cost"]
    assert any(text.startswith("cns1d: no trained model") for text in told)
    assert (archive.folder / "figures" / "darcy2d-maps.svg").read_text().startswith("<?xml")
    plates = dict(read_plates(archive.folder / "figures"))
    assert all("SpectraKAN" in plate.alt for plate in plates if plate.section == "Maps of predictions")
    assert all(len(plate.alt) > len(plate.caption) for plate in plates)
    made = command("results/smoke", "-o", "page.html", folder=archive.results.parent)
    assert made.returncode == 0, made.stderr
    text = (archive.results.parent / "page.html").read_text()
    found = outline(text)
    assert {"maps-of-predictions", "spectra", "main-table"} <= {each["id"] for each in found.named("section")}
    assert not re.search(r"https?:|@import|url\(", text)


def test_unknown_cases_have_no_figures(archive):
    with pytest.raises(ConfigError, match="no figures are planned for weather"):
        draw_figures(archive, cases=["weather"])


def test_a_folder_without_records_is_one_line_and_exit_code_2(tmp_path):
    failed = command(folder=tmp_path)
    assert failed.returncode == 2
    assert failed.stderr.startswith("error: 'results' holds no records")
    small_campaign(tmp_path)
    failed = command("--scale", "paper", folder=tmp_path)
    assert failed.returncode == 2
    assert "results/paper" in failed.stderr
