"""`spectrakan predict`: frames that follow those of a file, written with their units and coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectrakan.errors import ShapeError

if TYPE_CHECKING:
    from spectrakan.fields import Trajectories
    from spectrakan.models.operator import Operator
    from spectrakan.training.runtime import Runtime

BATCH = 8
"""Samples predicted at a time. It is fixed, and processes share out whole batches, because numbers differ in their
last digits between batches of different sizes: so the file is the same however many processes make it."""


def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="File of fields to start from.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .h5, or .nc for other programs.")],
    mapping: Annotated[
        Path | None,
        typer.Option(help="YAML file that says what the arrays of a foreign file mean.", show_default="the run's"),
    ] = None,
    horizon: Annotated[int | None, typer.Option(min=1, help="Frames to predict.", show_default="the run's")] = None,
    space_parallel: Annotated[int, typer.Option(min=1, help="Processes among which each field is cut.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Predict from the first frames of every sample of a file.

    \b
    spectrakan predict runs/darcy2d-spectrakan-0 coefficients.h5 -o pressure.nc
    spectrakan predict runs/droplet2d-fno-0 start.npz -o later.h5 --horizon 50
    torchrun --nproc-per-node 8 -m spectrakan predict RUN start.npz -o later.h5
    torchrun --nproc-per-node 8 -m spectrakan predict RUN start.npz -o later.h5 --space-parallel 4
    """
    import numpy as np
    import torch

    from spectrakan.cli.subject import run_data, start_process, stored_settings
    from spectrakan.data.files import check_output, write_dataset
    from spectrakan.models import from_pretrained
    from spectrakan.runs import RunFolder, read_record
    from spectrakan.training import resolve

    check_output(output, force=force)
    folder = RunFolder(run)
    config = stored_settings(folder)
    ahead = horizon or config.data.horizon or (read_record(folder.record)["horizon"] if folder.finished else None)
    ahead = ahead or resolve(folder.read_config()).problem.horizon
    with start_process(device, space_parallel) as runtime:
        model = from_pretrained(folder.trained()).to(runtime.device)
        made = predicted(model, run_data(config, source, mapping), ahead, runtime)
    if not runtime.writes:
        return
    write_dataset(output, made, dtype=np.float32)
    print(
        f"{output}: {made.num_samples} samples, {len(made.times)} frames of {', '.join(f.name for f in made.fields)}"
    )
    if cut := model.share_at_limits(torch.as_tensor(made.values)):
        print(
            f"{cut:.2%} of the values were cut off at the range of the training data, widened by a margin "
            "(model.range_margin): they are not to be trusted"
        )


def predicted(model: Operator, start: Trajectories, horizon: int, runtime: Runtime) -> Trajectories:
    """The frames that the model predicts after the first ones, on their grid, in their units."""
    from dataclasses import replace

    import numpy as np
    import torch

    from spectrakan.data.check import require_finite
    from spectrakan.evaluation.batches import EvaluationSettings, predicted_batches
    from spectrakan.evaluation.stability import predicted_times
    from spectrakan.fields import FieldSpec

    signature = model.signature
    if len(start.times) < signature.history:
        raise ShapeError(f"the model starts from {signature.history} frames, the file has {len(start.times)}")
    require_finite(start if start.steady else start.between(0, signature.history), "the input")
    ahead = 1 if signature.steady else horizon
    names = signature.out_fields or tuple(f"field_{index}" for index in range(signature.out_channels))
    known = {spec.name: spec for spec in start.fields}
    fields = tuple(known.get(name, FieldSpec(name)) for name in names)
    part = start if runtime.space is None else start.cut(runtime.space)
    mine = predicted_batches(
        model, part, runtime.share.part(start.num_samples, BATCH), ahead, EvaluationSettings(batch_size=BATCH)
    )
    # Of processes that hold parts of the fields the first gives the whole ones, the others none.
    keeps = runtime.space is None or runtime.space.rank == 0
    none = torch.empty((0, ahead, *start.grid.shape, signature.out_channels), dtype=model.residual_scale.dtype)
    pieces = [none, *(found for _, found in mine if keeps)]
    frames = torch.cat(runtime.exchange(torch.cat(pieces))).numpy()
    if signature.steady:
        return replace(start, values=frames, fields=fields, origin={})
    times = np.asarray(predicted_times(start, signature.history, ahead))
    return replace(start, values=frames, times=times, fields=fields, origin={})
