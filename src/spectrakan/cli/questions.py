"""What `spectrakan evaluate` answers about a run: scores, stability and error bands, recorded and in tables."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from spectrakan.cli.subject import Subject, load_subject, prepared_run, start_process
from spectrakan.cli.terminal import print_table
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

ROWS = 8
"""Frames that are shown of a curve; the record has all."""


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


def print_evaluation(found: dict[str, Any]) -> None:
    """Scores first, then each question that was asked."""
    _print_scores(found)
    tables = {"resolutions": _print_resolutions, "stability": _print_stability, "bands": _print_bands}
    for name, show in tables.items():
        if name in found:
            print()
            show(found[name])


def _print_scores(scores: dict[str, Any]) -> None:
    cells = _cells(scores["resolution"])
    print(f"{scores['model']} on {scores['num_samples']} samples, {cells} cells, {scores['horizon']} frames ahead")
    fields = scores["metrics_per_field"]
    rows = ([name, value, *(each.get(name) for each in fields.values())] for name, value in scores["metrics"].items())
    print_table(["metric", "all", *fields], rows)
    if len(times := scores["times"]) > 1:
        print("Error against time:")
        curves = [scores["metrics_per_frame"][name] for name in ("relative_l2", "rmse")]
        rows = ([f"{times[frame]:g}", *(curve[frame] for curve in curves)] for frame in _spread(len(times)))
        print_table(["time", "relative_l2", "rmse"], rows)


def _print_resolutions(found: dict[str, Any]) -> None:
    print(f"Trained at {found['trained_at']}, on the same samples at each resolution:")
    rows = []
    for entry in found["resolutions"]:
        error, *others = (entry["metrics"][name] for name in ("relative_l2", "rmse", "max_error", "frmse_high"))
        rows.append([_cells(entry["resolution"]), error, entry.get("ratio"), *others, entry["data"]])
    head = ["cells", "relative_l2", "over trained", "rmse", "max_error", "frmse_high", "data"]
    print_table(head, rows)


def _print_stability(found: dict[str, Any]) -> None:
    print(
        f"{found['blow_ups']} of {found['num_samples']} samples blow up within {found['horizon']} frames "
        f"({found['factor']} horizons; beyond {found['limit']:g} times the data's range, or not finite)"
    )
    broken = [
        [str(entry["sample"]), str(entry["blow_up_frame"]), f"{entry['blow_up_time']:g}", entry["kind"]]
        for entry in found["samples"]
        if entry["blow_up_frame"] is not None
    ]
    if broken:
        print_table(["sample", "frame", "time", "what"], broken[:ROWS])
    if count := found["frames_with_truth"]:
        curves = found["median_relative_l2"], found["largest_relative_l2"]
        rows = [[f"{found['times'][frame]:g}", *(curve[frame] for curve in curves)] for frame in _spread(count)]
        print_table(["time", "median error", "largest error"], rows)


def _print_bands(found: dict[str, Any]) -> None:
    promised = "nothing is promised" if found["promised"] is None else f"promised {found['promised']:.1%}"
    kept = "" if found["promised"] is None else ", kept" if found["kept"] else ", NOT kept"
    print(
        f"Bands from {found['num_calibration']} trajectories hold for {found['measured']:.1%} of "
        f"{found['num_test']} others, {promised} (standard error {found['standard_error']:.1%}){kept}"
    )
    for message in found.get("warnings", []):
        print(f"warning: {message}")
    rows = ([field, widths[0], widths[-1]] for field, widths in found["half_width"].items())
    print_table(["field", "mean half-width, first frame", "last frame"], rows)


def _spread(count: int) -> Sequence[int]:
    """At most `ROWS` indices from the first to the last."""
    return sorted({round(index * (count - 1) / max(1, min(ROWS, count) - 1)) for index in range(min(ROWS, count))})


def _cells(resolution: Sequence[int]) -> str:
    return " x ".join(map(str, resolution))
