"""`spectrakan train`: data, training, test and record in one command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectrakan.config import as_overrides
from spectrakan.errors import ConfigError

if TYPE_CHECKING:
    from spectrakan.training import Run, RunSettings


def train(
    problem: Annotated[
        str | None,
        typer.Argument(
            metavar="PROBLEM|CONFIG.yaml",
            help="A problem's name or a file of settings; left out: what the data pose.",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings, such as training.epochs=20.", show_default=False),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model.", show_default="spectrakan")] = None,
    data: Annotated[str | None, typer.Option(help="File of samples.", show_default="generated")] = None,
    test_data: Annotated[
        str | None, typer.Option(help="File of test samples.", show_default="a part of the data")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="YAML file that says what the arrays of a foreign file mean.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="smoke, short, long or paper.", show_default="short")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.", show_default="the budget's")] = None,
    init_from: Annotated[
        Path | None, typer.Option(help="Run or model whose weights training starts from (fine-tuning).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run folder.", show_default="runs/PROBLEM-MODEL-N")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights, batches and noise.", show_default="0")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.", show_default="auto")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Same bits every time, on GPUs too.")
    ] = False,
    resume_from: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="RUN", help="Continue a run; takes nothing else but --epochs, to extend it."
        ),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Show all settings with their meaning and stop.")
    ] = False,
) -> None:
    """Train a model on a problem, or on data of your own.

    Keeps the best and the last weights, tests at the end, writes a record.

    \b
    spectrakan train darcy2d                                        SpectraKAN on generated samples
    spectrakan train --data mine.h5                                 on data of your own
    spectrakan train --data era5.nc data.split.by=time data.split.gap=10
    spectrakan train droplet2d --model ffno --budget long           another model, ten times the epochs
    spectrakan train cns1d --data 1D_CFD_Rand_Eta0.01.hdf5 --budget paper
    spectrakan train runs/darcy2d-spectrakan-0/config.yaml          a run again
    spectrakan train --resume runs/darcy2d-spectrakan-0             a run that was cut short
    spectrakan train --resume runs/darcy2d-spectrakan-0 --epochs 50 a finished run, longer
    torchrun --nproc-per-node 2 -m spectrakan train darcy2d --output runs/two
    """
    if problem is not None and "=" in problem and not problem.endswith((".yaml", ".yml")):
        # Without a problem's name the first KEY=VALUE arrives in its place.
        changes = [problem, *(changes or [])]
        problem = None
    given = {
        "model.name": model,
        "data.path": data,
        "data.test_path": test_data,
        "data.mapping": None if mapping is None else str(mapping),
        "budget": budget,
        "training.init_from": None if init_from is None else str(init_from.absolute()),
        "runtime.seed": seed,
        "runtime.device": device,
        "runtime.deterministic": True if deterministic else None,
    }
    if resume_from is not None:
        if any(value is not None for value in (problem, changes or None, output, *given.values())):
            raise ConfigError("--resume takes nothing else but --epochs: a run continues with the settings it has")
        from spectrakan.training import resume

        _announce(resume(resume_from, epochs=epochs, progress=True))
        return
    overrides = [*(changes or []), *as_overrides(given | {"training.epochs": epochs})]
    from spectrakan.training import resolve

    resolved = resolve(problem, overrides)
    if print_config:
        from spectrakan.training import explained

        print(explained(resolved.config), end="")
        return
    from spectrakan.training import train as run_training

    _announce(run_training(problem, None, overrides, output or _free_folder(resolved.config), progress=True))


def _free_folder(config: RunSettings) -> Path:
    """The first folder under `runs` that is not taken yet."""
    if "RANK" in os.environ:
        raise ConfigError("several processes need one folder: give --output")
    number = 0
    while (place := Path("runs") / f"{config.task}-{config.model['name']}-{number}").exists():
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
