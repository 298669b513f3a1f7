"""`spectrakan predict`: frames that follow those of a file, written with their units and coordinates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from torch import Tensor

from spectrakan.data.catalog import TASKS
from spectrakan.data.load import load_dataset
from spectrakan.data.write import WRITERS, write_dataset
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.evaluation.batches import predict_frames
from spectrakan.fields import FieldSpec, Trajectories
from spectrakan.models import from_pretrained
from spectrakan.models.operator import Operator
from spectrakan.runs import RunFolder
from spectrakan.training.runtime import Runtime, started_on

BATCH = 8
"""Samples predicted at a time. It is fixed, and processes share out whole batches, for numbers differ in their
last digits between batches of different sizes: so the file is the same however many processes made it."""


def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="File of fields to start from.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .h5, .nc or .npz.")],
    horizon: Annotated[int | None, typer.Option(help="Frames to predict.", show_default="the task's")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Predict from the first frames of every sample of a file.

    \b
    spectrakan predict runs/darcy2d-spectrakan-0 coefficients.h5 -o pressure.nc
    spectrakan predict runs/droplet2d-fno-0 start.npz -o later.h5 --horizon 50
    torchrun --nproc-per-node 8 -m spectrakan predict RUN start.npz -o later.h5
    """
    if output.exists() and not force:
        raise ConfigError(f"'{output}' is there already; choose another --output, or --force to replace it")
    if output.suffix not in WRITERS:
        raise ConfigError(f"cannot write '{output}'; its name must end in one of {', '.join(WRITERS)}")
    task = str(RunFolder(run).read_config().get("task"))
    with started_on(device) as runtime:
        model = from_pretrained(RunFolder(run).best).to(runtime.device)
        made = predicted(model, load_dataset(source), task, horizon, runtime)
    if not runtime.writes:
        return
    write_dataset(output, made, dtype=np.float32)
    print(
        f"{output}: {made.num_samples} samples, {len(made.times)} frames of {', '.join(f.name for f in made.fields)}"
    )


def predicted(model: Operator, start: Trajectories, task: str, horizon: int | None, runtime: Runtime) -> Trajectories:
    """The frames that a model says follow the first ones, on their grid, in their units."""
    facts, known = model.signature, TASKS.get(task)
    names = [spec.name for spec in (start.input_fields if start.steady else start.fields)]
    fits = len(names) == facts.in_channels and start.steady == facts.steady and len(start.times) >= facts.history
    if not fits:
        raise ShapeError(
            f"the model starts from {facts.history} frames of {facts.in_channels} fields, "
            f"the file has {len(start.times)} of {', '.join(names)}"
        )
    ahead = 1 if facts.steady else horizon or (known.horizon if known else 1)
    fields = start.fields if len(start.fields) == facts.out_channels else _unnamed(facts.out_channels)
    model.eval()
    frames = runtime.gather_rows(_frames(model, start, ahead, runtime.share.part(start.num_samples, BATCH))).numpy()
    if facts.steady:
        return replace(start, values=frames, origin={})
    seen = start.times[: facts.history]
    step = float(np.diff(start.times)[-1]) if len(start.times) > 1 else 1.0
    later = start.times[facts.history : facts.history + ahead]
    beyond = (later[-1] if len(later) else seen[-1]) + step * np.arange(1, ahead - len(later) + 1)
    return replace(start, values=frames, times=np.concatenate([later, beyond]), fields=fields, origin={})


def _frames(model: Operator, start: Trajectories, ahead: int, samples: range) -> Tensor:
    """Predictions for successive samples, `(samples, ahead, *space, out)`, batch by batch."""
    facts = model.signature
    pieces = [torch.empty((0, ahead, *start.grid.shape, facts.out_channels), dtype=model.increment_scale.dtype)]
    for first in samples[::BATCH]:
        inputs, params = _window(start, facts.history, slice(first, min(first + BATCH, samples.stop)))
        pieces.append(predict_frames(model, inputs, ahead, params, start.grid))
    return torch.cat(pieces)


def _window(start: Trajectories, history: int, samples: slice) -> tuple[Tensor, Tensor | None]:
    """The first frames of some samples, and their parameters."""
    source = start.values if start.inputs is None else start.inputs
    frames = np.asarray(source[samples, :history], dtype=np.float32)
    params = None if start.params is None else torch.from_numpy(start.params[samples].astype(np.float32))
    return torch.from_numpy(frames), params


def _unnamed(count: int) -> tuple[FieldSpec, ...]:
    return tuple(FieldSpec(f"field_{index}") for index in range(count))
