"""What a training step of each model costs beside the others, measured in turns.

CPU seconds of cells that were trained hours apart on a shared machine differ by a third for reasons that are none of
the model's. All models of a case take the same number of steps, so the ratio of steps taken in turns is the ratio of
their trainings.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
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
ROUNDS = 41

Times = dict[str, dict[str, float]]
"""Median CPU seconds of a step by case and model."""


def measure_steps(archive: Archive, *, rounds: int = ROUNDS, tell: Callable[[str], None] = print) -> Times:
    """Measure all cases of the scale with one thread, keep the medians, and return them."""
    scale = scale_named(archive.scale)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    times: Times = {}
    try:
        for case in main_cases(scale):
            steps = {model: TrainingStep(archive.scale, case, model) for model in ("spectrakan", *scale.baselines)}
            times[case] = _in_turns(steps, rounds)
            tell(f"{case}: a step of SpectraKAN takes {times[case]['spectrakan'] / times[case]['fno']:.2f} of FNO's")
    finally:
        torch.set_num_threads(threads)
    facts = {"rounds": rounds, "cpu_seconds": times, "torch": torch.__version__}
    archive.folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(archive.folder / FILE, json.dumps(facts, indent=2) + "\n")
    return times


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


def _in_turns(steps: dict[str, TrainingStep], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each; every round takes one step of all, after one to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            start = time.process_time()
            step()
            if number:
                seconds[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}
