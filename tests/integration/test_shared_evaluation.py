"""`evaluate` and `predict` by two processes against the same by one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from run_process import Launcher
from torch import Tensor

from spectrakan.cli.predict import predict
from spectrakan.data import load_dataset
from spectrakan.data.files import write_dataset
from spectrakan.data.generate import generate
from spectrakan.evaluation import EvaluationSettings, Share, evaluate
from spectrakan.models import from_pretrained
from spectrakan.training import train

TINY = [
    "model.name=unet",
    "model.width=4",
    "data.num_samples=20",
    "data.resolution=32",
    "data.split.train=0.5",
    "data.split.validation=0.0",
    "data.split.test=0.5",
    "training.epochs=2",
]
SITE = {**os.environ, "OMP_NUM_THREADS": "1"}


def torchrun(*words: object) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "spectrakan", *map(str, words)]
    done = subprocess.run(command, env=SITE, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    train("darcy2d", overrides=TINY, output=folder / "run")
    write_dataset(folder / "start.h5", generate("darcy2d", 19, 32, seed=3, dtype=np.float32))
    return folder


@pytest.fixture(scope="module")
def launcher(run: Path) -> Iterator[Launcher]:
    made = Launcher(run)
    yield made
    made.close()


def same_scores(found: dict[str, Any], run: Path) -> bool:
    record = json.loads((run / "run" / "record.json").read_text())
    assert found["num_samples"] == 10
    assert len(found["metrics"]) == 9
    return all(found["metrics"][name] == pytest.approx(value, rel=1e-6) for name, value in record["metrics"].items())


def test_two_processes_give_the_scores_of_one_and_one_of_them_prints(run: Path, launcher: Launcher):
    group = launcher.start_group("evaluate", "run", "--json")
    assert [process.wait() for process in group] == [0, 0]
    assert same_scores(json.loads(group[0].out.read_text()), run)
    assert group[1].out.read_text() == ""


def test_two_processes_write_the_file_of_one(run: Path, launcher: Launcher):
    group = launcher.start_group("predict", "run", "start.h5", "-o", "two.h5")
    assert [process.wait() for process in group] == [0, 0]
    assert group[0].out.read_text().startswith("two.h5: 19 samples")
    assert group[1].out.read_text() == ""
    predict(run / "run", run / "start.h5", run / "one.h5")
    assert (run / "two.h5").read_bytes() == (run / "one.h5").read_bytes()


@pytest.mark.slow
def test_torchrun_does_the_same(run: Path):
    # Two documents would not parse.
    assert same_scores(json.loads(torchrun("evaluate", run / "run", "--json")), run)
    torchrun("predict", run / "run", run / "start.h5", "-o", run / "torchrun.h5")
    predict(run / "run", run / "start.h5", run / "alone.h5")
    assert (run / "torchrun.h5").read_bytes() == (run / "alone.h5").read_bytes()


def test_predictions_are_those_of_a_model_that_no_longer_learns(run: Path):
    # Batch statistics of the samples at hand would make an answer depend on its neighbours.
    predict(run / "run", run / "start.h5", run / "plain.h5")
    model = from_pretrained(run / "run" / "checkpoints" / "best").eval()
    data = generate("darcy2d", 19, 32, seed=3, dtype=np.float32)
    one: Tensor = model(torch.as_tensor(data.inputs)[5:6])
    found = load_dataset(run / "plain.h5")
    np.testing.assert_allclose(found.values[5, 0], one[0].detach().numpy(), rtol=1e-4, atol=1e-6)


def test_parts_that_are_joined_in_order_score_as_the_whole(run: Path):
    model, data = from_pretrained(run / "run" / "checkpoints" / "best"), generate("darcy2d", 11, 32, seed=4)
    whole = evaluate(model, data, settings=EvaluationSettings(batch_size=4))
    states: list[object] = []

    def hand_over(state: object) -> list[object]:
        states.append(state)
        return list(states)

    for rank in range(3):
        mine = EvaluationSettings(batch_size=4, share=Share(rank, 3, hand_over))
        joined = evaluate(model, data, settings=mine)
    assert len(states) == 3
    for name, value in whole["metrics"].items():
        assert joined["metrics"][name] == pytest.approx(value, rel=1e-6), name
