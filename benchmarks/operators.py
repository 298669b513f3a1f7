"""SpectraKAN in 2D beside neuraloperator's FNO: a training step, batch-1 inference, peak memory, growth.

Cells times batch is the same at every resolution, so numbers are comparable down the table.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn

import spectrakan as sk
from benchmarks.timing import interleaved
from spectrakan.models import Operator
from spectrakan.processor import keep_freed_memory

SIZES = ((64, 16), (128, 4), (256, 1))
"""Cells along an axis, batch."""
STATED: dict[str, Any] = {
    "width": 32, "num_modes": 12, "num_layers": 4, "coarse_num_modes": 8, "coarse_num_layers": 4,
    "block": "skip", "squeeze_excite": "open", "activation": "gelu",
}  # fmt: skip
"""Both branches and squeeze-excitation, with skip blocks."""


READOUT: dict[str, Any] = {"pool": "center", "conditioning": "readout"}
SIGNATURE = sk.OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=3)
UNROLLED_CELLS, UNROLLED_FRAMES = 128, 10


def default_model() -> Operator:
    """SpectraKAN as it is where fields evolve."""
    return sk.build_model("spectrakan", SIGNATURE)


def models() -> dict[str, nn.Module]:
    """The operators that are compared, all of width 32 with three fields in and out."""
    from neuralop.models import FNO

    return {
        "SpectraKAN (32 channels, 12 modes, 4 + 4 layers)": sk.build_model("spectrakan", SIGNATURE, **STATED),
        "SpectraKAN (default)": default_model(),
        "SpectraKAN (token in the readout)": sk.build_model("spectrakan", SIGNATURE, **READOUT),
        "SpectraKAN (paper)": sk.build_model("spectrakan", SIGNATURE, variant="paper"),
        "our FNO (12 modes of either sign)": sk.build_model("fno", SIGNATURE, width=32, num_modes=12),
        "FNO(12, 12)": FNO(n_modes=(12, 12), in_channels=3, out_channels=3, hidden_channels=32, n_layers=4),
        "FNO(24, 24)": FNO(n_modes=(24, 24), in_channels=3, out_channels=3, hidden_channels=32, n_layers=4),
    }


def inputs(model: nn.Module, cells: int, batch: int) -> Tensor:
    """A random field in the order of axes that the model takes."""
    field = torch.randn(batch, 1, cells, cells, 3, generator=torch.Generator().manual_seed(0))
    return field if isinstance(model, Operator) else field[:, 0].movedim(-1, 1).contiguous()


def training_step(model: nn.Module, field: Tensor, frames: int = 1) -> Callable[[], object]:
    """Forward over some unrolled frames, backward and an optimizer step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def run() -> None:
        optimizer.zero_grad()
        total, last = torch.zeros(()), field
        for _ in range(frames):
            frame = model(last)
            total = total + frame.square().mean()
            last = frame[:, None] if isinstance(model, Operator) else frame
        total.backward()
        optimizer.step()

    return run


def inference(model: nn.Module, field: Tensor) -> Callable[[], object]:
    """One forward pass without gradients."""

    def run() -> None:
        with torch.no_grad():
            model(field)

    return run


def with_two_threads(rounds: int) -> list[dict[str, object]]:
    """The same at 64² with two threads, on the clock: a thread that waits for the other uses CPU time too."""
    torch.set_num_threads(2)
    try:
        return step_and_inference(rounds, time.perf_counter, SIZES[:1])
    finally:
        torch.set_num_threads(1)


def with_kept_memory(rounds: int) -> list[dict[str, object]]:
    """The same where the C library keeps freed memory, as training asks of it, in a process of its own."""
    context = multiprocessing.get_context("spawn")  # what is asked of the C library lasts as long as the process
    with ProcessPoolExecutor(1, mp_context=context, initializer=_keep_memory) as pool:
        return pool.submit(step_and_inference, rounds).result()


def _keep_memory() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    keep_freed_memory()


def step_and_inference(
    rounds: int, clock: Callable[[], float] = time.process_time, sizes: Sequence[tuple[int, int]] = SIZES
) -> list[dict[str, object]]:
    """Seconds of a training step and of batch-1 inference for all models and sizes."""
    rows: list[dict[str, object]] = []
    made = models()
    for cells, batch in sizes:
        steps = {name: training_step(model, inputs(model, cells, batch)) for name, model in made.items()}
        answers = {name: inference(model, inputs(model, cells, 1)) for name, model in made.items()}
        for kind, cases in (("training step", steps), ("batch-1 inference", answers)):
            seconds = interleaved(cases, rounds=rounds, clock=clock)
            rows += [
                {
                    "kind": kind,
                    "cells": cells,
                    "batch": batch if kind == "training step" else 1,
                    "model": name,
                    "seconds": value,
                }
                for name, value in seconds.items()
            ]
    return rows


def growth(rounds: int) -> dict[str, float]:
    """Exponent p of step time ~ cells^p from 64² to 256² at batch 4."""
    found = {}
    for name, model in models().items():
        seconds = interleaved(
            {str(cells): training_step(model, inputs(model, cells, 4)) for cells in (64, 256)},
            rounds=max(3, rounds // 3),
        )
        found[name] = math.log(seconds["256"] / seconds["64"]) / math.log(16)
    return found


def peak_memory() -> list[dict[str, object]]:
    """Peak memory of one training step beyond model and input, each in a process of its own."""
    return [_peak(name, cells, batch, 1) for cells, batch in SIZES for name in models()]


def unrolled_memory() -> list[dict[str, object]]:
    """The same for one sample and several unrolled frames."""
    names = ["SpectraKAN (default)", "SpectraKAN (token in the readout)", "FNO(12, 12)"]
    return [_peak(name, UNROLLED_CELLS, 1, UNROLLED_FRAMES) for name in names]


def _peak(name: str, cells: int, batch: int, frames: int) -> dict[str, object]:
    numbers = [str(cells), str(batch), str(frames)]
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.memory", name, *numbers]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    megabytes = json.loads(done.stdout.strip().splitlines()[-1])
    return {"cells": cells, "batch": batch, "model": name, "megabytes": megabytes}
