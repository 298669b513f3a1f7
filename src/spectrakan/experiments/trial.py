"""One cell from its beginning to its record: train, keep the best on validation, then read the test once."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spectrakan.config import as_mapping
from spectrakan.data.catalog import task as task_named
from spectrakan.data.prepare import obtain
from spectrakan.evaluation.anomaly import anomaly_scores
from spectrakan.evaluation.evaluate import evaluate
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell, comparable, run_settings
from spectrakan.experiments.datasets import Datasets, Scored
from spectrakan.experiments.longer import long_rollout
from spectrakan.experiments.scales import Case, scale_named
from spectrakan.models.operator import Operator
from spectrakan.runs import RunFolder, make_record, read_log
from spectrakan.storage import write_text_atomically
from spectrakan.training import EpochEnded, Event, Run, RunSettings, resume, train
from spectrakan.training.events import Listener

KEPT = ("metrics", "metrics_per_field", "num_samples", "horizon", "resolution")
"""What is kept of scores beside the main ones."""


@dataclass
class CpuClock:
    """CPU seconds of a training, over all its parts if it was stopped and went on."""

    folder: RunFolder
    begin: float
    before: float = 0.0

    def __call__(self, event: Event) -> None:
        """Keep the time after each epoch."""
        if isinstance(event, EpochEnded):
            self.keep()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self.before + time.process_time() - self.begin

    def keep(self) -> None:
        """Write the time into the run folder."""
        write_text_atomically(self.folder.path / "cpu.json", json.dumps({"seconds": self.seconds}))


def train_cell(cell: Cell, archive: Archive, listeners: Sequence[Listener] = ()) -> tuple[Run, float]:
    """Train a cell (or go on with it) and keep its weights; gives its run and the CPU seconds of its training."""
    choices = _choices(cell, archive)
    return _trained(choices, archive.run_folder(cell, choices), listeners)


def run_cell(cell: Cell, archive: Archive, listeners: Sequence[Listener] = ()) -> dict[str, Any]:
    """Train a cell unless its weights are there, score it, and keep its record."""
    scale = scale_named(cell.scale)
    case = scale.cases[cell.case]
    datasets = Datasets(scale, archive.cache, archive.ledger)
    choices = _choices(cell, archive)
    folder = archive.run_folder(cell, choices)
    run, seconds = train_cell(cell, archive, listeners)
    details = {
        "case": cell.case,
        "label": cell.label,
        "train_wall_seconds": run.record["train_seconds"],
        "steps": max((line["step"] for line in read_log(folder.log)), default=0),
        "validation": _validated(run, choices),
    }
    scores: dict[str, Any] = {}
    if cell.test:
        scores = _tested(run.model, cell, case, datasets, details)
    record = make_record(
        **{
            **{key: value for key, value in run.record.items() if key != "details"},
            "table": cell.table,
            "scale": cell.scale,
            "variant": cell.variant,
            "horizon": scores.get("horizon"),
            "metrics": scores.get("metrics", {}),
            "metrics_per_field": scores.get("metrics_per_field", {}),
            "train_seconds": round(seconds, 3),
            "config": comparable(as_mapping(choices)),
            "provenance": _counted(run.record["provenance"]),
        },
        details=details,
    )
    archive.keep(cell, record)
    shutil.rmtree(folder.last, ignore_errors=True)
    return record


def _choices(cell: Cell, archive: Archive) -> RunSettings:
    """The settings of a cell, with the file of its training samples."""
    path = Datasets(scale_named(cell.scale), archive.cache, archive.ledger).training_file(cell.case)
    return run_settings(cell, None if path is None else str(path))


def _trained(choices: RunSettings, folder: RunFolder, listeners: Sequence[Listener]) -> tuple[Run, float]:
    """The finished run, and the CPU seconds that it took."""
    book = folder.path / "cpu.json"
    before = json.loads(book.read_text())["seconds"] if book.is_file() else 0.0
    clock = CpuClock(folder, time.process_time(), before)
    if folder.finished:
        return resume(folder.path), before
    told: list[Listener] = [clock, *listeners]
    if folder.started:
        run = resume(folder.path, listeners=told)
    else:
        run = train(as_mapping(choices), output=folder.path, listeners=told)
    clock.keep()
    return run, clock.seconds


def _validated(run: Run, choices: RunSettings) -> dict[str, Any]:
    """Scores on the validation samples, with the weights that were the best on them."""
    data = obtain(task_named(choices.task), choices.data)
    samples = run.record["provenance"]["split"]["validation"]
    return _kept(
        evaluate(run.model, data, horizon=_horizon(run.model, choices.task, len(data.times)), samples=samples)
    )


def _tested(model: Operator, cell: Cell, case: Case, datasets: Datasets, details: dict[str, Any]) -> dict[str, Any]:
    """Scores on the reserved samples; what goes beyond the table's own metric is added to the details."""
    entry = task_named(case.task)
    reader = str(cell.file)
    test = datasets.test(cell.case, reader)
    horizon = _horizon(model, case.task, case.frames or len(test.trajectories.times))
    scores = evaluate(model, test.trajectories, horizon=horizon, samples=test.samples)
    details |= {
        "test_sha256": test.sha256,
        "times": scores["times"],
        "metrics_per_frame": scores["metrics_per_frame"],
    }
    if entry.scored_times and any(time <= test.trajectories.times[-1] for time in entry.scored_times):
        at_times = evaluate(model, test.trajectories, samples=test.samples)
        details["scored_times"] = {"times": at_times["times"], **_kept(at_times)}
    if entry.anomalies:
        _add_anomalies(scores, model, case, test)
    if case.resolutions:
        details["resolutions"] = {
            str(cells): _kept(
                evaluate(model, datasets.test(cell.case, reader, resolution=cells).trajectories, horizon=horizon)
            )
            for cells in case.resolutions
        }
    if model.signature.evolves and case.long_samples:
        longer = datasets.test(cell.case, reader, longer=True)
        details["stability"] = long_rollout(model, longer.trajectories, horizon or 1)
    return scores


def _add_anomalies(scores: dict[str, Any], model: Operator, case: Case, test: Scored) -> None:
    """How much of the departures from the mean of the training days is explained."""
    explained = anomaly_scores(model, test.trajectories, range(case.num_samples), test.samples)
    for name, value in explained.items():
        scores["metrics_per_field"][name]["anomaly_r2"] = value
    scores["metrics"]["anomaly_r2"] = sum(explained.values()) / len(explained)


def _horizon(model: Operator, task: str, frames: int) -> int | None:
    """Frames that are predicted and all counted: the task's, or as many as there are; None where nothing evolves."""
    if not model.signature.evolves:
        return None
    return min(task_named(task).horizon, frames - model.signature.history)


def _counted(provenance: dict[str, Any]) -> dict[str, Any]:
    """The provenance with sizes of the parts in place of their indices, which follow from the settings."""
    return {**provenance, "split": {part: _count(samples) for part, samples in provenance["split"].items()}}


def _kept(scores: dict[str, Any]) -> dict[str, Any]:
    return {key: scores[key] for key in KEPT}


def _count(samples: Any) -> Any:
    return len(samples) if isinstance(samples, list) else samples
