"""What models cost: CPU seconds, parameters, memory and steps beside FNO's; and what missing cells would cost.

CPU seconds of cells that were trained hours apart on a shared machine differ by 30 % for reasons outside the model.
All models of a case take the same number of steps, so ratios of steps are ratios of trainings. Each model takes turns
with FNO alone, in several processes: the placement of arrays in memory changes times by 20 % from process to process,
and beside eight others SpectraKAN's steps on shallow water came out 25 % slower than beside FNO.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from experiments.archive import Archive
from experiments.cells import Cell, run_settings
from experiments.main import TABLE
from experiments.scales import TRIVIAL, scale_named
from experiments.summaries import NAMES, Result, Results, row_name
from spectrakan.data.generate import generate
from spectrakan.data.prepare import GENERATED_SAMPLES, NO_TEST, Prepared, find, trimmed
from spectrakan.data.problems import problem_named
from spectrakan.fields import Array
from spectrakan.models import build_model
from spectrakan.models.operator import Operator
from spectrakan.report.table import Column, Row, Score, Table
from spectrakan.storage import write_text_atomically
from spectrakan.training import RunSettings
from spectrakan.training.assemble import training_windows
from spectrakan.training.resolve import planned

FORWARD_SHARE = 1 / 3
"""A prediction costs about a third of a step: the backward pass is twice the forward one."""
BATCH = 8
"""Samples of a measured step; one alone would be dominated by what every step costs."""
FILE = "steps.json"
PROCESSES = 3
ROUNDS = 10
STEPS_A_TURN = 2
NOTE = (
    "CPU seconds of the training process, validation included, mean over seeds; memory is the peak of the process, "
    "of which about 300 MB are Python and torch. Cells were trained at different hours of a shared machine: steps of "
    "all models taken in turns (`python -m experiments steps`) compare better."
)

Times = dict[str, dict[str, float]]
"""Median CPU seconds of a step by case and model."""


def tables(archive: Archive) -> list[Table]:
    """One table a case: error against training seconds."""
    results = Results.of(archive, TABLE)
    return [_table(results, case, archive) for case in results.cases()]


def _seconds(result: Result | None) -> Score:
    return Score(None) if result is None else result.score(lambda record: record["train_seconds"])


def _table(results: Results, case: str, archive: Archive) -> Table:
    reference = _seconds(results.find(case, "fno")).value
    others = ("CPU seconds", "/ FNO's", "step / FNO's", "parameters", "peak MB")
    columns = (Column("RMSE"), *(Column(name, "neither") for name in others))
    rows = []
    for model, variant in [(model, variant) for model in NAMES for variant in ("default", "paper")]:
        result = results.find(case, model, variant)
        if result is None:
            continue
        spent = _seconds(result)
        relative = None if not reference or spent.value is None else spent.value / reference
        first = result.records[0]
        cells = (
            result.metric("rmse"),
            spent,
            Score(relative),
            Score(step_ratio(archive, case, model) if variant == "default" else None),
            f"{first['parameters']:,}",
            f"{first['peak_memory_mb']:.0f}",
        )
        rows.append(Row(row_name(model, variant), cells, ranked=model not in TRIVIAL))
    return Table(f"Accuracy and cost: {case}", columns, tuple(rows), (NOTE,))


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
    for case in scale.main_cases:
        fno, ratios = [], {}
        for model in chosen:
            pairs = [_in_own_process(archive.scale, case, model, rounds) for _ in range(processes)]
            ratios[model] = statistics.median(pair[model] / pair["fno"] for pair in pairs)
            fno += [pair["fno"] for pair in pairs]
            tell(f"{case}: a step of {model} takes {ratios[model]:.2f} of FNO's")
        unit = statistics.median(fno)
        times[case] = {"fno": unit, **{model: ratio * unit for model, ratio in ratios.items()}}
    found = {"processes": processes, "rounds": rounds, "cpu_seconds": times, "torch": torch.__version__}
    archive.folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(archive.folder / FILE, json.dumps(found, indent=2) + "\n")
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

    def __init__(self, scale: str, case: str, model: str) -> None:
        config = run_settings(Cell(TABLE, scale, case, model))
        data, batch = data_of(config), config.training.batch_size
        signature, cells = data.signature(), data.trajectories.grid.shape
        self.operator = build(config)
        self.optimizer = torch.optim.AdamW(self.operator.parameters(), lr=1e-4, fused=True)
        self.inputs = torch.randn(batch, signature.history, *cells, signature.in_channels)
        self.targets = torch.randn(batch, *cells, signature.out_channels)

    def __call__(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        (self.operator(self.inputs) - self.targets).square().mean().backward()
        self.optimizer.step()


@dataclass
class Estimator:
    """CPU seconds of cells; the step of each model on each case is measured once. Trivial baselines take none."""

    _measured: dict[tuple[str, ...], float] = field(default_factory=dict)

    def seconds(self, cell: Cell) -> float:
        """CPU seconds of training and validating a cell on one core of this machine."""
        config = run_settings(cell)
        return self._step(cell, config) * (trained_frames(config) + FORWARD_SHARE * validated_frames(config))

    def _step(self, cell: Cell, config: RunSettings) -> float:
        key = (cell.case, *sorted(map(str, config.model.items())))
        if key not in self._measured:
            model = build(config)
            learns = any(parameter.requires_grad for parameter in model.parameters())
            cells = data_of(config).trajectories.grid.shape
            self._measured[key] = step_seconds(model, cells, batch=BATCH, repeats=1) / BATCH if learns else 0.0
        return self._measured[key]


def step_seconds(model: Operator, space: Sequence[int], *, batch: int = 1, repeats: int = 3) -> float:
    """CPU seconds of one forward and backward pass on random fields: the median after one pass to warm up.

    CPU time of all threads, not wall-clock time, so that other work on the machine matters less. A model without
    parameters has no backward pass.
    """
    signature = model.signature
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, signature.history, *space, signature.in_channels, generator=generator)
    params = torch.randn(batch, signature.num_params, generator=generator) if signature.num_params else None
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        loss = model(x, params).square().mean()
        if loss.requires_grad:
            loss.backward()
        seconds.append(time.process_time() - start)
        model.zero_grad(set_to_none=True)
    return statistics.median(seconds[1:])


def data_of(config: RunSettings) -> Prepared:
    """The data of a config as they are cut: those of its file, else random numbers in their shape."""
    own, problem = config.data, problem_named(config.task)
    if own.path is not None or problem.equation is None:
        return planned(problem, own, find(problem, own))
    frames = None if own.frames is None else (own.frames - 1) * own.stride_time + 1
    lazy = generate(problem.name, 1, own.resolution, frames=frames, params=own.params, dtype=None)
    count = own.num_samples or GENERATED_SAMPLES

    def random(array: Array | None) -> Any:
        """Positive numbers, as some fields have to be; all samples are views of one, which takes no memory."""
        if array is None:
            return None
        numbers = np.random.default_rng(0).random(array.shape[1:], dtype=np.float32) + np.float32(0.5)
        return np.broadcast_to(numbers, (count, *numbers.shape))

    blank = replace(lazy, values=random(lazy.values), inputs=random(lazy.inputs), params=random(lazy.params))
    return planned(problem, own, trimmed(blank, replace(own, num_samples=None, resolution=None)))


def span(seconds: float) -> str:
    """A time in the unit that fits it.

    >>> span(50), span(600), span(86400)
    ('50 s', '10 min', '24.0 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def build(config: RunSettings) -> Operator:
    """The model of a config, for the signature of its data, fitted to a batch of them."""
    data, settings = data_of(config), dict(config.model)
    model = build_model(settings.pop("name"), data.signature(), **settings)
    windows = data.windows("train")
    model.fit_windows([windows.gather(range(min(BATCH, len(windows))))])
    return model


def trained_frames(config: RunSettings) -> int:
    """Frames that go forward and backward through a model in a whole training.

    >>> config = run_settings(Cell("main", "short", "darcy2d", "fno"))
    >>> trained_frames(config) == 900 * config.training.epochs
    True
    """
    windows = training_windows(config, data_of(config))
    return config.training.epochs * len(windows) * windows.config.horizon


def validated_frames(config: RunSettings) -> int:
    """Frames that are predicted for all validations."""
    data = data_of(config)
    samples = round((config.data.split or NO_TEST).validation * data.trajectories.num_samples)
    ahead = 1 if data.problem.steady else min(data.horizon, len(data.trajectories.times) - data.history)
    return math.ceil(config.training.epochs / config.training.validate_epochs) * samples * ahead
