"""`spectrakan bench`: how fast models train and infer on this machine, taken in turns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectrakan.cli.models import count_parameters, reference_signatures
from spectrakan.errors import ConfigError, nearest

if TYPE_CHECKING:
    from torch import Tensor

    from spectrakan.models import Operator


def bench(
    task: Annotated[
        str, typer.Argument(help="Task whose fields to take; `spectrakan tasks` lists them.")
    ] = "shallow_water2d",
    model: Annotated[list[str] | None, typer.Option(help="Models.", show_default="spectrakan, fno, ffno")] = None,
    resolution: Annotated[int | None, typer.Option(min=8, help="Cells per axis.", show_default="the task's")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Samples in a training step.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Times that every model is measured.")] = 11,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Time training and inference of models on this machine.

    A training step and the inference of one sample, each model in turn, over that of the first.

    On a busy machine the ratios say more than the seconds.

    \b
    spectrakan bench                                             SpectraKAN, FNO and F-FNO on shallow water
    spectrakan bench darcy2d --model fno --model spectrakan      over FNO's time
    spectrakan bench cns1d --resolution 1024 --batch-size 16
    """
    from spectrakan.cli.terminal import print_table
    from spectrakan.evaluation.cost import interleaved
    from spectrakan.models import build_model
    from spectrakan.training.display import progress_bar
    from spectrakan.training.presets import size_of
    from spectrakan.training.runtime import pick_device

    sizes = reference_signatures()
    if task not in sizes:
        raise ConfigError(f"unknown task '{task}'{nearest(task, sizes)}")
    names = list(dict.fromkeys(model or ["spectrakan", "fno", "ffno"]))
    where = pick_device(device)
    signature, own = sizes[task]
    space = own if resolution is None else (resolution,) * len(own)
    operators = {name: build_model(name, signature, **size_of(name, len(own))).to(where) for name in names}
    shape = (signature.history, *space, signature.in_channels)
    with progress_bar("training steps, then inference") as advance:
        steps = interleaved(
            {n: _timed(each, (batch_size, *shape), trains=True) for n, each in operators.items()}, rounds
        )
        advance(1, 2)
        single = interleaved({n: _timed(each, (1, *shape), trains=False) for n, each in operators.items()}, rounds)
        advance(2, 2)
    first = names[0]
    # Medians, and medians of the ratios round by round.
    found: list[dict[str, Any]] = [
        {
            "model": name,
            "parameters": count_parameters(operators[name]),
            "step_ms": 1e3 * float(steps[name].median()),
            "step_ratio": float((steps[name] / steps[first]).median()),
            "inference_ms": 1e3 * float(single[name].median()),
            "inference_ratio": float((single[name] / single[first]).median()),
        }
        for name in names
    ]
    if as_json:
        print(json.dumps({"task": task, "cells": list(space), "device": str(where), "models": found}, indent=2))
        return
    print(f"{task}, {' x '.join(map(str, space))} cells, {where}, medians of {rounds} rounds in turns:")
    over = f"over {first}"
    head = ["model", "parameters", f"step of {batch_size}, ms", over, "inference, ms", over]
    print_table(head, [list(each.values()) for each in found])


def _timed(operator: Operator, shape: tuple[int, ...], *, trains: bool) -> Callable[[], object]:
    """Forward on random numbers; where it trains and has weights, backward and the trainer's optimizer too."""
    import torch

    weights = [parameter for parameter in operator.parameters() if trains and parameter.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-6, fused=True) if weights else None
    fields = torch.randn(*shape, device=operator.residual_scale.device)

    def run() -> float:
        with torch.set_grad_enabled(trains):
            loss: Tensor = operator(fields).square().mean()
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()  # waits for a GPU

    return run
