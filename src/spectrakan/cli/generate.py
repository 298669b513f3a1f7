"""`spectrakan generate`: samples of a task, made by its solver and written to a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from spectrakan.cli.progress import progress_bar
from spectrakan.config import apply_overrides
from spectrakan.data.generate import generate_lazily
from spectrakan.data.space import require_space
from spectrakan.data.write import WRITERS, write_dataset
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories


def generate(
    task: Annotated[str, typer.Argument(help="Name of the task; `spectrakan tasks` lists them.")],
    parameters: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Parameters of the equation.", show_default=False),
    ] = None,
    num_samples: Annotated[int, typer.Option("--num-samples", "-n", help="How many samples.")] = 100,
    resolution: Annotated[int | None, typer.Option(help="Cells per axis.", show_default="the task's")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames per sample.", show_default="the task's")] = None,
    seed: Annotated[int, typer.Option(help="Sample i depends on the seed and on i alone.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .h5, .nc or .npz.", show_default="TASK.h5"),
    ] = None,
    double: Annotated[bool, typer.Option("--double", help="Store float64 instead of float32.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Make samples of a task and write them to a file; memory stays small however many there are.

    \b
    spectrakan generate darcy2d                                     100 samples to darcy2d.h5
    spectrakan generate droplet2d -n 1000 --seed 1 -o train.h5      more, elsewhere
    spectrakan generate cns1d -n 20 --resolution 256 eta=0.1 zeta=0.1
    spectrakan generate shallow_water2d family=pdebench             PDEBench's own dams
    spectrakan generate diffusion_reaction1d "nu=[0.1, 1.0]"        nu drawn anew for each sample

    A number given as a range [low, high] is drawn uniformly for each sample and stored as a condition.
    """
    path = Path(f"{task}.h5") if output is None else output
    if path.exists() and not force:
        raise ConfigError(f"'{path}' is there already; choose another --output, or --force to replace it")
    if path.suffix not in WRITERS:
        raise ConfigError(f"cannot write '{path}'; its name must end in one of {', '.join(WRITERS)}")
    params = apply_overrides({}, parameters or [])
    with progress_bar(f"solving {task}") as progress:
        made = generate_lazily(task, num_samples, resolution, seed, frames=frames, params=params, progress=progress)
        require_space(path.parent, _bytes(made, 8 if double else 4), f"'{path}'")
        write_dataset(path, made, dtype=np.float64 if double else np.float32)
    print(f"{path}: {num_samples} samples of {task}, {path.stat().st_size / 1e6:.1f} MB")


def _bytes(trajectories: Trajectories, item_size: int) -> int:
    """Size of the fields in a file."""
    inputs = 0 if trajectories.inputs is None else math.prod(trajectories.inputs.shape)
    return item_size * (math.prod(trajectories.values.shape) + inputs)
