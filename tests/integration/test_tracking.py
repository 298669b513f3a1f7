"""Tracking services: TensorBoard by its own reader, the others by stand-ins that keep what they are given."""

from __future__ import annotations

import signal
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from spectrakan.errors import ConfigError
from spectrakan.runs import read_log
from spectrakan.training import StepTaken, resume, train
from spectrakan.training.session import Stopped

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
    "runtime.track=[tensorboard]",
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


class Recorder:
    """Stands in for wandb and for MLflow's client: one run, its curves, and whether it was finished."""

    def __init__(self) -> None:
        self.points: list[tuple[int, str, float]] = []
        self.runs: list[dict] = []
        self.finished = 0

    def init(self, **settings):
        self.runs.append(settings)
        return self

    def log(self, numbers, step):
        self.points += [(step, name, value) for name, value in numbers.items()]

    def finish(self):
        self.finished += 1

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id=name) if self.runs else None

    def create_experiment(self, name):
        return name

    def search_runs(self, experiments, filter_string):
        kept = [run for run in self.runs if f"'{run['tags']['spectrakan_run']}'" in filter_string]
        return [SimpleNamespace(info=SimpleNamespace(run_id=run["tags"]["spectrakan_run"])) for run in kept]

    def create_run(self, experiment, tags, run_name):
        self.runs.append({"experiment": experiment, "tags": tags, "name": run_name})
        return SimpleNamespace(info=SimpleNamespace(run_id=tags["spectrakan_run"]))

    def log_param(self, run, name, value): ...

    def log_metric(self, run, name, value, step):
        self.points.append((step, name, value))

    def set_terminated(self, run):
        self.finished += 1


@pytest.mark.parametrize("service", ["wandb", "mlflow"])
def test_services_get_the_numbers_of_the_log_and_a_resumed_run_continues_its_own(tmp_path, monkeypatch, service):
    kept, module = Recorder(), ModuleType(service)
    module.__spec__ = ModuleSpec(service, None)
    module.init = kept.init
    tracking = ModuleType(f"{service}.tracking")
    tracking.MlflowClient = lambda: kept
    monkeypatch.setitem(sys.modules, service, module)
    monkeypatch.setitem(sys.modules, f"{service}.tracking", tracking)

    def interrupt(event):
        if isinstance(event, StepTaken) and event.step == 4:
            signal.raise_signal(signal.SIGTERM)

    chosen = [*TINY[:-1], f"runtime.track=[{service}]"]
    with pytest.raises(Stopped):
        train("darcy2d", overrides=chosen, output=tmp_path / "run", listeners=[interrupt])
    resume(tmp_path / "run")
    for name, event, key in (("loss/step", "step", "loss"), ("validation", "epoch", "validation")):
        points = [(step, value) for step, curve, value in kept.points if curve == name]
        assert points == logged(tmp_path / "run", event, key)
    assert kept.finished == 2
    if service == "wandb":
        assert {run["id"] for run in kept.runs} == {kept.runs[0]["id"]}
        assert kept.runs[0]["config"]["model"]["width"] == 4
    else:
        assert len(kept.runs) == 1, "the resumed run is the run before"


@pytest.mark.parametrize(("service", "extra"), [("wandb", "wandb"), ("mlflow", "mlflow")])
def test_a_missing_service_is_named_with_its_extra(tmp_path, monkeypatch, service, extra):
    monkeypatch.setitem(sys.modules, service, None)
    with pytest.raises(ConfigError, match=rf"spectrakan\[{extra}\]"):
        train("darcy2d", overrides=[*TINY[:-1], f"runtime.track=[{service}]"], output=tmp_path / "run")
