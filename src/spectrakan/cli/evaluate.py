"""`spectrakan evaluate`: scores of a trained model, on its own test samples or on a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from spectrakan.cli.progress import progress_bar
from spectrakan.data.load import load_dataset
from spectrakan.data.prepare import prepare
from spectrakan.errors import ConfigError
from spectrakan.evaluation import evaluate as evaluate_model
from spectrakan.models import from_pretrained
from spectrakan.runs import RunFolder
from spectrakan.training import resolve
from spectrakan.training.runtime import Runtime, started_on


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    data: Annotated[Path | None, typer.Option(help="File of samples.", show_default="the run's test samples")] = None,
    resolution: Annotated[int | None, typer.Option(help="Cells per axis.", show_default="as trained")] = None,
    horizon: Annotated[int | None, typer.Option(help="Frames to predict.", show_default="the task's")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Score the best weights of a run: rollouts from the first window, every metric.

    \b
    spectrakan evaluate runs/droplet2d-fno-0                      on the run's own test samples
    spectrakan evaluate runs/droplet2d-fno-0 --resolution 64      the same samples, solved on a finer grid
    spectrakan evaluate runs/droplet2d-fno-0 --data new.h5 --horizon 50
    torchrun --nproc-per-node 8 -m spectrakan evaluate RUN        the samples shared out among processes
    """
    with started_on(device) as runtime:
        scores = _scores(RunFolder(run), data, resolution, horizon, runtime)
    if not runtime.writes:
        return
    if as_json:
        print(json.dumps(scores, indent=2))
        return
    cells = " x ".join(str(size) for size in scores["resolution"])
    print(f"{scores['model']} on {scores['num_samples']} samples, {cells} cells, {scores['horizon']} frames ahead")
    for name, value in scores["metrics"].items():
        fields = "  ".join(f"{field} {each[name]:.4g}" for field, each in scores["metrics_per_field"].items())
        print(f"{name:12} {value:.4g}    {fields}")


def _scores(
    folder: RunFolder, data: Path | None, resolution: int | None, horizon: int | None, runtime: Runtime
) -> dict[str, Any]:
    choices = resolve(folder.read_config())
    model = from_pretrained(folder.best).to(runtime.device)
    if data is not None:
        found = load_dataset(data)
        if found.task not in {"", choices.task}:
            raise ConfigError(f"'{data}' holds {found.task}, the run was trained on {choices.task}")
        return evaluate_model(model, found, resolution, horizon, share=runtime.share)
    # Made or read anew at the resolution asked for: sample i depends on the seed and on i alone.
    wanted = choices.data if resolution is None else replace(choices.data, resolution=resolution)
    with progress_bar(f"solving {choices.task}") as progress:
        prepared = prepare(choices.task, wanted, progress if runtime.writes else None)
    samples = prepared.split.part("test")
    if not samples:
        raise ConfigError("the run has no test samples; give --data")
    ahead = horizon or choices.data.horizon
    return evaluate_model(model, prepared.trajectories, horizon=ahead, samples=samples, share=runtime.share)
