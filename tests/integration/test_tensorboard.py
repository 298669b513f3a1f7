"""TensorBoard: files that its own reader reads, with the numbers of the log."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from spectrakan.errors import ConfigError
from spectrakan.runs import read_log
from spectrakan.training import StepTaken, resume, train
from spectrakan.training.stop import Stopped

TINY = [
    "model.name=amfno",
    "model.width=4",
    "model.num_layers=1",
    "model.num_modes=3",
    "data.num_samples=10",
    "data.resolution=8",
    "training.batch_size=3",
    "training.epochs=3",
    "runtime.log_steps=1",
    "runtime.tensorboard=true",
]


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = reader.EventAccumulator(str(folder / "tensorboard"))
    found.Reload()
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def logged(folder: Path, event: str, key: str) -> list[tuple[int, float]]:
    lines = [line for line in read_log(folder / "log.jsonl") if line["event"] == event]
    return [(line["step"], pytest.approx(line[key], rel=1e-6)) for line in lines]


def test_the_curves_are_those_of_the_log_also_of_a_run_that_was_cut_short(tmp_path):
    pytest.importorskip("tensorboard")

    def interrupt(event):
        if isinstance(event, StepTaken) and event.step == 4:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped):
        train("darcy2d", overrides=TINY, output=tmp_path / "run", listeners=[interrupt])
    resume(tmp_path / "run")
    found = curves(tmp_path / "run")
    assert found.keys() == {"loss/step", "loss/epoch", "rate", "validation"}
    assert [step for step, _ in found["loss/step"]] == list(range(1, 10))
    assert found["loss/step"] == logged(tmp_path / "run", "step", "loss")
    assert found["rate"] == logged(tmp_path / "run", "step", "rate")
    assert found["validation"] == logged(tmp_path / "run", "epoch", "validation")


def test_without_the_package_a_run_is_refused_before_anything_is_done(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ConfigError, match=r"pip install 'spectrakan\[track\]'"):
        train("darcy2d", overrides=TINY, output=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
