"""What `spectrakan evaluate` answers about a run: scores, stability and error bands."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from spectrakan.cli.evaluation_tables import print_evaluation
from spectrakan.cli.subject import Subject, load_subject, prepared_run, start_process
from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError
from spectrakan.evaluation import (
    EvaluationSettings,
    band_coverage,
    calibrated,
    check_bands,
    check_evaluation,
    check_stability,
    require_capability,
    stability,
)
from spectrakan.evaluation import evaluate as evaluate_model
from spectrakan.runs import RunFolder, data_digest, provenance
from spectrakan.runs import as_json as plain
from spectrakan.storage import require_writable, write_text_atomically
from spectrakan.training.display import progress_bar
from spectrakan.training.runtime import Runtime


@dataclass(frozen=True)
class Asked:
    """The questions of one call: names among `QUESTIONS`, resolutions, frames, and whether to force a grid."""

    questions: tuple[str, ...] = ()
    resolutions: tuple[int, ...] = ()
    horizon: int | None = None
    force: bool = False
    space_parallel: int = 1
    """Processes among which each field is cut."""


def answer(run: Path, data: Path | None, mapping: Path | None, asked: Asked, *, device: str, as_json: bool) -> None:
    """Check what can be checked first, score, answer, write beside the run and print."""
    if asked.space_parallel > 1 and (asked.questions or asked.resolutions):
        raise ConfigError("--space-parallel scores fields on their own cells; ask for all else without it")
    with start_process(device, asked.space_parallel) as runtime:
        subject = load_subject(RunFolder(run), data, mapping=mapping, device=runtime.device, space=runtime.space)
        if subject.warning and runtime.writes:
            print(f"warning: {subject.warning}", file=sys.stderr)
        _check_first(subject, asked)
        found = _scores(subject, asked, runtime)
        if runtime.writes:
            found |= {name: QUESTIONS[name](subject, asked.horizon) for name in asked.questions}
        # Processes that hold parts of the fields make the digest together.
        digest = data_digest(subject.trajectories) if runtime.writes or runtime.space is not None else ""
    if not runtime.writes:
        return
    path = _written(subject, found, asked, runtime, digest)
    if as_json:
        print(json.dumps(plain(found), indent=2))
        return
    print_evaluation(found)
    print(f"written to {path}")


def _check_first(subject: Subject, asked: Asked) -> None:
    """Refuse what would fail at the end of a long evaluation."""
    require_writable(subject.folder.path / "evaluations")
    check_evaluation(subject.model, subject.trajectories, subject.ahead(asked.horizon), samples=subject.samples)
    for cells in asked.resolutions:
        require_capability(subject.model, cells, subject.trained_at, force=asked.force)
    if "stability" in asked.questions:
        check_stability(subject.model, subject.trajectories)
    if "bands" in asked.questions:
        own = subject.prepared()
        check_bands(own.split)
        if own.trajectories.grid.shape != subject.trajectories.grid.shape:
            raise ConfigError(
                "error bands hold on the grid they were calibrated on, that of training; leave --bands out"
            )


def _scores(subject: Subject, asked: Asked, runtime: Runtime) -> dict[str, Any]:
    """Scores as trained, or at the first resolution with those at all of them beside."""
    model, data, resolutions = subject.model, subject.trajectories, asked.resolutions
    with progress_bar("scoring") as shown:
        shared = EvaluationSettings(share=runtime.share, progress=shown if runtime.writes else None)
        settings: dict[str, Any] = {"samples": subject.samples, "settings": shared}
        settings["horizon"] = subject.ahead(asked.horizon)
        if not resolutions:
            return evaluate_model(model, data, **settings)
        if data.origin or subject.from_file:
            entries = [evaluate_model(model, data, cells, **settings) for cells in resolutions]
        else:
            # A run on a file of others: every n-th cell of its finer grid, as training takes them.
            again = [prepared_run(subject.resolved, cells).parts["test"].trajectories for cells in resolutions]
            entries = [evaluate_model(model, samples, **settings) for samples in again]
    errors = {max(entry["resolution"]): entry["metrics"]["relative_l2"] for entry in entries}
    home = errors.get(subject.trained_at)
    entries = [entry | {"ratio": entry["metrics"]["relative_l2"] / home if home else None} for entry in entries]
    return entries[0] | {"resolutions": {"trained_at": subject.trained_at, "resolutions": entries}}


def _stability(subject: Subject, horizon: int | None) -> dict[str, Any]:
    with progress_bar("stability") as progress:
        settings = EvaluationSettings(progress=progress)
        ahead = subject.ahead(horizon)
        return stability(subject.model, subject.trajectories, ahead, samples=subject.samples, settings=settings)


def _bands(subject: Subject, horizon: int | None) -> dict[str, Any]:
    """Calibrated on the run's own calibration part, tried on the samples that are scored."""
    prepared = subject.prepared()
    ordered = (prepared.config.split or prepared.problem.split).by in ("sample_order", "time")
    with progress_bar("bands") as progress:
        made = calibrated(
            subject.model,
            prepared.trajectories,
            prepared.split,
            subject.ahead(horizon),
            time_ordered=ordered,
            settings=EvaluationSettings(progress=progress),
        )
    return band_coverage(subject.model, made, subject.trajectories, subject.samples)


QUESTIONS: dict[str, Callable[[Subject, int | None], dict[str, Any]]] = {
    "stability": _stability,
    "bands": _bands,
}
"""What each question runs."""


def _written(subject: Subject, found: dict[str, Any], asked: Asked, runtime: Runtime, digest: str) -> Path:
    """The record of this evaluation, beside the run, under a name made of what was asked."""
    frames = [] if asked.horizon is None else [f"{asked.horizon}frames"]
    name = "-".join([subject.name, *map(str, asked.resolutions), *frames, *asked.questions])
    path = subject.folder.path / "evaluations" / f"{name}.json"
    record = {
        **found,
        "task": subject.config.task,  # a file need not name its problem
        "parameters": sum(parameter.numel() for parameter in subject.model.parameters()),
        "config": as_mapping(subject.config),
        "provenance": provenance(
            data_sha256=digest,
            device=runtime.device.type,
            processes=runtime.world_size,
            threads=torch.get_num_threads(),
            samples=list(subject.samples),
        ),
    }
    path.parent.mkdir(exist_ok=True)
    write_text_atomically(path, json.dumps(plain(record), indent=2, allow_nan=False) + "\n")
    return path
