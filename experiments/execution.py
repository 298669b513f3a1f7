"""One cell from its beginning to its record: train, keep the best on validation, then score the test once."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.archive import Archive
from experiments.cells import Cell, comparable, run_settings
from experiments.datasets import Datasets
from experiments.frozen import require_frozen, settings_hash
from experiments.outside import outside_scores
from experiments.scales import DEVELOPMENT_SEED, scale_named
from experiments.tails import sample_errors, summary_of
from spectrakan.config import as_mapping
from spectrakan.data.prepare import Prepared, prepare
from spectrakan.evaluation import evaluate
from spectrakan.evaluation.stability import stability
from spectrakan.fields import Trajectories
from spectrakan.models.operator import Operator
from spectrakan.runs import RunFolder, make_record, read_log
from spectrakan.storage import versions, write_text_atomically
from spectrakan.training import EpochEnded, Event, Listener, Run, RunSettings, resume, train

VALIDATED = ("rates",)
"""Tables whose cells are chosen by validation alone: development samples are not scored for them."""
KEPT = ("metrics", "metrics_per_field", "num_samples", "horizon", "resolution")
"""What is kept of scores beside the main ones."""


@dataclass
class CpuClock:
    """CPU seconds of a training, over all its parts if it was stopped and continued."""

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
    """Train a cell (or continue it) and keep its weights; gives its run and the CPU seconds of its training."""
    config = _config(cell, archive)
    folder = archive.run_folder(cell, config)
    book = folder.path / "cpu.json"
    before = json.loads(book.read_text())["seconds"] if book.is_file() else 0.0
    clock = CpuClock(folder, time.process_time(), before)
    if folder.finished:
        return resume(folder.path), before
    heard: list[Listener] = [clock, *listeners]
    if folder.started:
        run = resume(folder.path, listeners=heard, progress=False)
    else:
        run = train(as_mapping(config), output=folder.path, listeners=heard, progress=False)
    clock.keep()
    return run, clock.seconds


def run_cell(cell: Cell, archive: Archive, listeners: Sequence[Listener] = ()) -> dict[str, Any]:
    """Train a cell unless its weights are there, score it, and keep its record."""
    if cell.test:
        require_frozen(cell, archive)
    config = _config(cell, archive)
    folder = archive.run_folder(cell, config)
    run, seconds = train_cell(cell, archive, listeners)
    prepared = prepare(config.task, config.data)
    validation = prepared.parts["validation"]
    details = {
        "case": cell.case,
        "label": cell.label,
        "overrides": list(cell.overrides),
        "train_wall_seconds": run.record["train_seconds"],
        "steps": max((line["step"] for line in read_log(folder.log)), default=0),
        "validation": _kept(
            evaluate(run.model, validation.trajectories, horizon=prepared.horizon, samples=validation.samples)
        ),
    }
    datasets = Datasets(archive)
    scores = score_test(run.model, cell, prepared, datasets, details) if cell.test else {}
    samples = None if cell.test or cell.table in VALIDATED else datasets.development(cell.case)
    if samples is not None:
        errors = sample_errors(run.model, samples, prepared.horizon)
        details["development"] = {"seed": DEVELOPMENT_SEED, **summary_of(errors)}
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
            "config": comparable(as_mapping(config)),
            "provenance": _counted(run.record["provenance"]),
        },
        details=details,
    )
    archive.keep(cell, record)
    for version in versions(folder.last):
        shutil.rmtree(version, ignore_errors=True)
    return record


def _config(cell: Cell, archive: Archive) -> RunSettings:
    """The settings of a cell, with the file of its training samples."""
    path = Datasets(archive).training_file(cell)
    return run_settings(cell, None if path is None else str(path.absolute()))


def score_test(
    model: Operator, cell: Cell, prepared: Prepared, datasets: Datasets, details: dict[str, Any]
) -> dict[str, Any]:
    """Scores on the reserved samples; what goes beyond the table's own metric is added to the details."""
    scale, problem, reader = scale_named(cell.scale), prepared.problem, str(cell.file)
    details["settings_sha256"] = settings_hash(cell)
    test = datasets.test(cell.case, reader)
    train_days = prepared.parts["train"].samples if problem.anomalies else None
    scores = evaluate(
        model, test.trajectories, horizon=prepared.horizon, samples=test.samples, anomalies_from=train_days
    )
    details |= {
        "test_sha256": test.sha256,
        "times": scores["times"],
        "metrics_per_frame": scores["metrics_per_frame"],
    }
    if problem.equation is not None:
        details["tails"] = summary_of(sample_errors(model, test.trajectories, prepared.horizon))
    if problem.scored_times and any(instant <= test.trajectories.times[-1] for instant in problem.scored_times):
        at_times = evaluate(model, test.trajectories, samples=test.samples)
        details["scored_times"] = {"times": at_times["times"], **_kept(at_times)}
    for cells in scale.resolutions.get(cell.case, ()):
        other = datasets.test(cell.case, reader, resolution=cells)
        found = _kept(evaluate(model, other.trajectories, horizon=prepared.horizon))
        details.setdefault("resolutions", {})[str(cells)] = found
    if not problem.steady and scale.long_samples:
        longer = datasets.test(cell.case, reader, longer=True)
        details["stability"] = long_rollout(model, longer.trajectories, prepared.horizon)
    details |= outside_scores(model, cell.case, reader, datasets)
    return scores


def long_rollout(model: Operator, trajectories: Trajectories, horizon: int) -> dict[str, Any]:
    """The median over samples of the relative L2 of each frame, at one and at five horizons, and the blow-ups.

    `growth` is the last error over that at the horizon; it and the errors are None where they are not finite.
    """
    found = stability(model, trajectories, horizon)
    curve = found["median_relative_l2"]
    here, end = curve[horizon - 1], curve[-1]
    return {
        "horizon": found["horizon"],
        "num_samples": found["num_samples"],
        "blown_up": found["blow_ups"],
        "times": found["times"],
        "relative_l2": curve,
        "at_horizon": here,
        "at_end": end,
        "growth": end / here if here and end is not None else None,
    }


def _counted(provenance: dict[str, Any]) -> dict[str, Any]:
    """The provenance with sizes of the parts in place of their indices, which follow from the settings."""
    return {**provenance, "split": {part: _count(samples) for part, samples in provenance["split"].items()}}


def _kept(scores: dict[str, Any]) -> dict[str, Any]:
    return {key: scores[key] for key in KEPT}


def _count(samples: Any) -> Any:
    return len(samples) if isinstance(samples, list) else samples
