"""What a training step of each model costs beside the others.

CPU seconds of cells that were trained hours apart on a shared machine differ by a third for reasons that are none of
the model's. All models of a case take the same number of steps, so ratios of steps are ratios of trainings.
Each model takes turns with FNO alone, in several processes: where arrays lie makes a fifth of difference from process
to process, and beside eight others SpectraKAN's steps on shallow water came out a quarter slower than beside FNO.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch

from spectrakan.data.catalog import task as task_named
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell, run_settings
from spectrakan.experiments.estimate import signature_of
from spectrakan.experiments.main import TABLE, main_cases
from spectrakan.experiments.scales import scale_named
from spectrakan.models import build_model
from spectrakan.storage import write_text_atomically

FILE = "steps.json"
PROCESSES = 3
ROUNDS = 10
STEPS_A_TURN = 2

Times = dict[str, dict[str, float]]
"""Median CPU seconds of a step by case and model."""


def measure_steps(
    archive: Archive,
    *,
    models: Sequence[str] | None = None,
    rounds: int = ROUNDS,
    processes: int = PROCESSES,
    tell: Callable[[str], None] = print,
) -> Times:
    """Measure all models, or some, beside FNO with one thread, on all cases of the scale; keep the medians."""
    scale = scale_named(archive.scale)
    chosen = [model for model in models or ("spectrakan", *scale.baselines) if model != "fno"]
    times: Times = {}
    for case in main_cases(scale):
        fno, ratios = [], {}
        for model in chosen:
            pairs = [_in_own_process(archive.scale, case, model, rounds) for _ in range(processes)]
            ratios[model] = statistics.median(pair[model] / pair["fno"] for pair in pairs)
            fno += [pair["fno"] for pair in pairs]
            tell(f"{case}: a step of {model} takes {ratios[model]:.2f} of FNO's")
        unit = statistics.median(fno)
        times[case] = {"fno": unit, **{model: ratio * unit for model, ratio in ratios.items()}}
    facts = {"processes": processes, "rounds": rounds, "cpu_seconds": times, "torch": torch.__version__}
    archive.folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(archive.folder / FILE, json.dumps(facts, indent=2) + "\n")
    return times


def _in_own_process(scale: str, case: str, model: str, rounds: int) -> dict[str, float]:
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure_beside_fno, scale, case, model, rounds).result()


def measure_beside_fno(scale: str, case: str, model: str, rounds: int) -> dict[str, float]:
    """Median CPU seconds of a training step of a model and of FNO in turns, with one thread.

    The first step of a turn is not counted: the other model has left its own arrays in the cache.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        steps = {name: TrainingStep(scale, case, name) for name in (model, "fno")}
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(rounds):
            for name, step in steps.items():
                step()
                for _ in range(STEPS_A_TURN):
                    start = time.process_time()
                    step()
                    seconds[name].append(time.process_time() - start)
        return {name: statistics.median(values) for name, values in seconds.items()}
    finally:
        torch.set_num_threads(threads)


def step_ratio(archive: Archive, case: str, model: str) -> float | None:
    """A model's step over FNO's on a case, where they were measured."""
    path = archive.folder / FILE
    found: dict[str, Any] = json.loads(path.read_text())["cpu_seconds"].get(case, {}) if path.is_file() else {}
    return float(found[model] / found["fno"]) if model in found and "fno" in found else None


class TrainingStep:
    """Forward, backward and optimizer on random numbers, as large as the case's batches; one frame ahead."""

    def __init__(self, scale: str, case_name: str, model: str) -> None:
        case = scale_named(scale).cases[case_name]
        choices = run_settings(Cell(TABLE, scale, case_name, model), None)
        own = task_named(case.task).resolution
        space = own if case.resolution is None else (case.resolution,) * len(own)
        facts = signature_of(case)
        named = {key: value for key, value in choices.model.items() if key not in {"name", "variant"}}
        self.operator = build_model(model, facts, variant=choices.model["variant"], **named)
        self.optimizer = torch.optim.AdamW(self.operator.parameters(), lr=1e-4, fused=True)
        self.inputs = torch.randn(choices.training.batch_size, facts.history, *space, facts.in_channels)
        self.targets = torch.randn(choices.training.batch_size, *space, facts.out_channels)

    def __call__(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        (self.operator(self.inputs) - self.targets).square().mean().backward()
        self.optimizer.step()
