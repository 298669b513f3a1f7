"""`spectrakan train`: data, training, test and record in one command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from spectrakan.cli.display import training_display
from spectrakan.cli.estimate import print_estimate
from spectrakan.cli.progress import progress_bar
from spectrakan.config import as_mapping, to_yaml
from spectrakan.errors import ConfigError
from spectrakan.training import Run, RunSettings, resolve, resume
from spectrakan.training import train as run_training


def train(
    task: Annotated[
        str | None,
        typer.Argument(metavar="TASK|CONFIG.yaml", help="A task's name, or a file of settings.", show_default=False),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings, such as training.epochs=20.", show_default=False),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model.", show_default="spectrakan")] = None,
    data: Annotated[str | None, typer.Option(help="File of samples.", show_default="generated")] = None,
    output: Annotated[Path | None, typer.Option(help="Run folder.", show_default="runs/TASK-MODEL-N")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights, batches and noise.", show_default="0")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.", show_default="auto")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Same bits every time, on GPUs too.")
    ] = False,
    resume_from: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="Go on with a run; takes nothing else.")
    ] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Show all settings and stop.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show shapes, parameters, memory and time; write nothing.")
    ] = False,
) -> None:
    """Train a model on a task: keeps the best and the last weights, tests at the end, writes a record.

    \b
    spectrakan train darcy2d                                        SpectraKAN on generated samples
    spectrakan train droplet2d --model amfno training.epochs=20     another model, fewer epochs
    spectrakan train cns1d --data 1D_CFD_Rand_Eta0.01.hdf5 training.recipe=pdebench
    spectrakan train runs/darcy2d-spectrakan-0/config.yaml          a run again
    spectrakan train --resume runs/darcy2d-spectrakan-0             a run that was cut short
    torchrun --nproc-per-node 2 -m spectrakan train darcy2d --output runs/two
    """
    given = {
        "model.name": model,
        "data.path": data,
        "runtime.seed": seed,
        "runtime.device": device,
        "runtime.deterministic": True if deterministic else None,
    }
    if resume_from is not None:
        _refuse_beside_resume(task, changes, output, given)
        _announce(_resumed(resume_from))
        return
    if task is None:
        raise ConfigError("name a task or a config file, or --resume a run; `spectrakan tasks` lists the tasks")
    overrides = [*(changes or []), *_as_overrides(given)]
    choices = resolve(task, overrides)
    if print_config:
        print(to_yaml(as_mapping(choices)), end="")
        return
    if dry_run:
        print_estimate(choices)
        return
    place = output or _free_folder(choices)
    with training_display() as display, progress_bar(f"solving {choices.task}") as progress:
        run = run_training(as_mapping(choices), output=place, listeners=[display], progress=progress)
    _announce(run)


def _resumed(folder: Path) -> Run:
    with training_display() as display, progress_bar("solving") as progress:
        return resume(folder, listeners=[display], progress=progress)


def _refuse_beside_resume(task: str | None, changes: list[str] | None, output: Path | None, given: Any) -> None:
    extra = [task, *(changes or []), output, *given.values()]
    if any(value is not None for value in extra):
        raise ConfigError("--resume takes nothing else: a run goes on with the settings it was started with")


def _as_overrides(given: dict[str, Any]) -> list[str]:
    """Flags as overrides; text is quoted, for a file may be called anything."""
    plain = {key: value for key, value in given.items() if value is not None}
    return [f"{key}={to_yaml({'v': value})[3:].strip()}" for key, value in plain.items()]


def _free_folder(choices: RunSettings) -> Path:
    """The first folder under `runs` that is not taken yet."""
    if "RANK" in os.environ:
        raise ConfigError("several processes need one folder: give --output")
    number = 0
    while (place := Path("runs") / f"{choices.task}-{choices.model['name']}-{number}").exists():
        number += 1
    return place


def _announce(run: Run) -> None:
    if int(os.environ.get("RANK", "0")):
        return
    scores = run.record["metrics"]
    shown = "  ".join(
        f"{name} {scores[name]:.4g}" for name in ("relative_l2", "rmse", "max_error") if scores.get(name)
    )
    print(f"test: {shown}" if shown else "test: no test samples")
    print(f"{run.folder}: {run.record['parameters']} parameters, {run.record['train_seconds']:.1f} s of training")
