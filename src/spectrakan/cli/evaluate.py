"""`spectrakan evaluate`: scores of a trained model, on its own test samples or on a file, and what is behind them."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from spectrakan.cli.evaluation_tables import print_evaluation
from spectrakan.cli.progress import progress_bar
from spectrakan.cli.subject import Subject, load_subject
from spectrakan.config import as_mapping
from spectrakan.data.prepare import prepare
from spectrakan.evaluation import (
    BandWarning,
    band_coverage,
    calibrated,
    profile,
    resolution_scores,
    rollout_cost,
    speed_up,
)
from spectrakan.evaluation import evaluate as evaluate_model
from spectrakan.evaluation import stability as long_rollouts
from spectrakan.evaluation.plain import plain
from spectrakan.evaluation.resolution import require_ability
from spectrakan.runs import RunFolder, provenance
from spectrakan.runs.provenance import data_digest
from spectrakan.storage import write_text_atomically
from spectrakan.training.runtime import Runtime, started_on

QUESTIONS = ("profile", "cost", "stability", "bands")


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    data: Annotated[Path | None, typer.Option(help="File of samples.", show_default="the run's test samples")] = None,
    resolution: Annotated[
        list[int] | None,
        typer.Option(help="Cells along the longest axis; may be given several times.", show_default="as trained"),
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Frames to predict.", show_default="the task's")] = None,
    with_profile: Annotated[
        bool, typer.Option("--profile", help="Errors, spectra and conserved quantities against time.")
    ] = False,
    cost: Annotated[bool, typer.Option("--cost", help="Time, memory, and speed-up over the solver.")] = False,
    stability: Annotated[
        bool, typer.Option("--stability", help="Roll out to five horizons; report blow-ups.")
    ] = False,
    bands: Annotated[bool, typer.Option("--bands", help="Error bands from the calibration part.")] = False,
    any_model: Annotated[
        bool, typer.Option("--any-model", help="Run models on other grids that change their meaning there.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Score the best weights of a run: rollouts from the first window, every metric.

    What was found is also written to RUN/evaluations/, with its provenance.

    \b
    spectrakan evaluate runs/droplet2d-fno-0                      on the run's own test samples
    spectrakan evaluate RUN --resolution 32 --resolution 64       the same samples, solved on each grid
    spectrakan evaluate RUN --data new.h5 --horizon 50
    spectrakan evaluate RUN --profile --stability --cost --bands  all questions
    torchrun --nproc-per-node 8 -m spectrakan evaluate RUN        the samples shared out among processes
    """
    asked = dict(zip(QUESTIONS, (with_profile, cost, stability, bands), strict=True))
    with started_on(device) as runtime:
        subject = load_subject(RunFolder(run), data, runtime)
        found = _scores(subject, resolution or [], horizon, any_model, runtime)
        if runtime.writes:
            found |= {name: ask(subject, horizon) for name, ask in ASKED.items() if asked[name]}
    if not runtime.writes:
        return
    path = _written(subject, found, [name for name in QUESTIONS if asked[name]], resolution or [], horizon, runtime)
    if as_json:
        print(json.dumps(plain(found), indent=2))
        return
    print_evaluation(found)
    print(f"written to {path}")


def _scores(
    subject: Subject, resolutions: list[int], horizon: int | None, any_model: bool, runtime: Runtime
) -> dict[str, Any]:
    """Scores as trained, or at the first resolution with those at all of them beside."""
    model, data = subject.model, subject.trajectories
    settings: dict[str, Any] = {"horizon": subject.ahead(horizon), "samples": subject.samples, "share": runtime.share}
    with progress_bar("scoring") as shown:
        progress = shown if runtime.writes else None
        if not resolutions:
            return evaluate_model(model, data, **settings, progress=progress)
        if data.origin:
            found = resolution_scores(
                model, data, resolutions, trained_at=subject.trained_at, any_model=any_model, **settings
            )
            first: dict[str, Any] = found["resolutions"][0]
            return first | {"resolutions": found}
        entries = []
        for wanted in resolutions:
            require_ability(model, wanted, subject.trained_at, any_model=any_model)
            if subject.from_file:
                entries.append(evaluate_model(model, data, wanted, **settings))
            else:
                # A run on a file of others: every n-th cell of its finer grid, as training takes them.
                again = prepare(subject.choices.task, replace(subject.choices.data, resolution=wanted))
                entries.append(evaluate_model(model, again.trajectories, **settings))
        return entries[0] | {"resolutions": {"trained_at": subject.trained_at, "resolutions": entries}}


def _profile(subject: Subject, horizon: int | None) -> dict[str, Any]:
    with progress_bar("profile") as progress:
        return profile(
            subject.model, subject.trajectories, subject.ahead(horizon), samples=subject.samples, progress=progress
        )


def _cost(subject: Subject, horizon: int | None) -> dict[str, Any]:
    """Against the solver where the samples are its own, else of the model alone."""
    few = subject.samples[:8]
    if not subject.trajectories.origin:
        return rollout_cost(subject.model, subject.trajectories, subject.ahead(horizon), samples=few)
    with progress_bar("timing") as progress:
        return speed_up(subject.model, subject.trajectories, subject.ahead(horizon), samples=few, progress=progress)


def _stability(subject: Subject, horizon: int | None) -> dict[str, Any]:
    with progress_bar("long rollouts") as progress:
        return long_rollouts(
            subject.model, subject.trajectories, subject.ahead(horizon), samples=subject.samples, progress=progress
        )


def _bands(subject: Subject, horizon: int | None) -> dict[str, Any]:
    """Calibrated on the run's own calibration part, tried on the samples that are scored."""
    prepared = subject.prepared()
    ordered = (prepared.choices.split or prepared.task.split).time_ordered
    with progress_bar("bands") as progress:
        made = calibrated(
            subject.model,
            prepared.trajectories,
            prepared.split,
            subject.ahead(horizon),
            time_ordered=ordered,
            progress=progress,
        )
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always", BandWarning)
        found = band_coverage(subject.model, made, subject.trajectories, subject.samples)
    return found | {"warnings": sorted({str(each.message) for each in noticed})}


ASKED = {"profile": _profile, "cost": _cost, "stability": _stability, "bands": _bands}
"""What each question runs."""


def _written(
    subject: Subject,
    found: dict[str, Any],
    asked: list[str],
    resolutions: list[int],
    horizon: int | None,
    runtime: Runtime,
) -> Path:
    """The record of this evaluation, beside the run, under a name made of what was asked."""
    frames = [] if horizon is None else [f"{horizon}frames"]
    name = "-".join([subject.name, *map(str, resolutions), *frames, *asked])
    path = subject.folder.path / "evaluations" / f"{name}.json"
    record = found | {
        "config": as_mapping(subject.choices),
        "provenance": provenance(
            data_sha256=data_digest(subject.trajectories),
            device=runtime.device.type,
            processes=runtime.world_size,
            threads=torch.get_num_threads(),
            samples=list(subject.samples),
        ),
    }
    path.parent.mkdir(exist_ok=True)
    write_text_atomically(path, json.dumps(plain(record), indent=2, allow_nan=False) + "\n")
    return path
