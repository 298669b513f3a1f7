"""`spectrakan train` and the campaign train the same thing: for every problem, model, variant and budget."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import spectrakan
from experiments.cells import Cell, run_settings
from experiments.scales import MAIN_CASES, SCALES
from experiments.unseen.catalog import UNSEEN
from spectrakan.config import as_mapping
from spectrakan.data.files import write_dataset
from spectrakan.data.problems import PROBLEMS
from spectrakan.fields import Trajectories
from spectrakan.models.catalog import MODELS, VARIANTS
from spectrakan.training import resolve

OWN = ("path", "test_samples", "test_seed", "split")
"""Data settings of a cell that follow from its cached file and its reserved test samples."""


def compared(config: dict[str, Any]) -> dict[str, Any]:
    data = {key: value for key, value in config["data"].items() if key not in OWN}
    return {"task": config["task"], "data": data, "model": config["model"], "training": config["training"]}


def of_cell(problem: str, model: str, variant: str, budget: str) -> dict[str, Any]:
    return compared(as_mapping(run_settings(Cell("main", budget, problem, model, variant), "train.h5")))


def test_the_cases_are_the_problems_of_the_library():
    assert set(MAIN_CASES) == set(PROBLEMS)
    assert set(SCALES) == {"smoke", "short", "long", "paper"}


@pytest.mark.parametrize("budget", SCALES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_preset_is_the_campaigns_cell(problem: str, budget: str):
    for model in MODELS:
        for variant in ("default", *VARIANTS.get(model, {})):
            asked = [f"model.name={model}", f"model.variant={variant}", f"budget={budget}"]
            resolved = compared(as_mapping(resolve(problem, asked).config))
            assert resolved == of_cell(problem, model, variant, budget), (problem, model, variant, budget)


@pytest.mark.parametrize(
    ("problem", "model", "variant", "budget"),
    [
        ("darcy2d", "spectrakan", "default", "short"),
        ("shallow_water2d", "ffno", "default", "long"),
        ("cns1d", "spectrakan", "paper", "paper"),
    ],
)
def test_the_command_prints_the_config_of_the_cell(problem: str, model: str, variant: str, budget: str):
    environment = os.environ | {"PYTHONPATH": str(Path(spectrakan.__file__).parents[1])}
    words = [problem, "--model", model, "--budget", budget, "--print-config", f"model.variant={variant}"]
    shown = subprocess.run(
        [sys.executable, "-m", "spectrakan", "train", *words],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    printed = compared(yaml.safe_load(shown.stdout))
    # JSON has no tuples.
    expected = yaml.safe_load(yaml.safe_dump(of_cell(problem, model, variant, budget)))
    assert printed == expected


@pytest.mark.parametrize("model", ["spectrakan", "ffno"])
def test_the_command_trains_own_data_as_the_cell_of_an_unseen_problem(model: str, tmp_path: Path):
    """A file of as many samples, called by no known name, beside a file of test samples."""
    entry, cell = UNSEEN["kuramoto_sivashinsky1d"], Cell("unseen", "short", "kuramoto_sivashinsky1d", model)
    shape = (len(entry.equation.times), *entry.equation.resolution, 1)
    for name, count in (("mine", entry.num_samples), ("tests", 2)):
        values = np.zeros((count, *shape), np.float32)
        data = Trajectories.from_arrays(values, ("u",), boundary=("periodic",), name=name)
        write_dataset(tmp_path / f"{name}.h5", data)
    environment = os.environ | {"PYTHONPATH": str(Path(spectrakan.__file__).parents[1])}
    files = ["--data", str(tmp_path / "mine.h5"), f"data.test_path={tmp_path / 'tests.h5'}"]
    shown = subprocess.run(
        [sys.executable, "-m", "spectrakan", "train", *files, "--model", model, "--print-config"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    printed = yaml.safe_load(shown.stdout)
    expected = yaml.safe_load(yaml.safe_dump(as_mapping(run_settings(cell, "train.h5"))))
    assert printed["training"] == expected["training"]
    assert printed["model"] == expected["model"]
