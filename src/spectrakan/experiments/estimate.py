"""What cells would cost: their steps times the time of a step, measured on this machine on random numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from spectrakan.data.catalog import task as task_named
from spectrakan.evaluation.step_cost import step_seconds
from spectrakan.experiments.cells import Cell, run_settings
from spectrakan.experiments.scales import Case, case_named, scale_named
from spectrakan.fields import OperatorSignature
from spectrakan.models import build_model
from spectrakan.training import RunSettings

FORWARD_SHARE = 1 / 3
"""A prediction costs about a third of a step: the backward pass is twice the forward one."""

BATCH = 8
"""Samples of a measured step; one alone would be dominated by what every step costs."""


@dataclass
class Estimator:
    """CPU seconds of cells; the step of each model on each case is measured once. Floors train nothing."""

    _measured: dict[tuple[str, ...], float] = field(default_factory=dict)

    def seconds(self, cell: Cell) -> float:
        """CPU seconds of training and validating a cell on one core of this machine."""
        case = case_named(scale_named(cell.scale), cell.case)
        choices = run_settings(cell, None)
        per_sample = self._step(cell, case, choices)
        return per_sample * (trained_frames(case, choices) + FORWARD_SHARE * validated_frames(case, choices))

    def _step(self, cell: Cell, case: Case, choices: RunSettings) -> float:
        key = (cell.scale, cell.case, cell.model, cell.variant, *sorted(map(str, choices.model.items())))
        if key not in self._measured:
            named = {name: value for name, value in choices.model.items() if name not in {"name", "variant"}}
            model = build_model(cell.model, signature_of(case), variant=choices.model["variant"], **named)
            own = task_named(case.task).resolution
            cells = own if case.resolution is None else (case.resolution,) * len(own)
            learns = any(parameter.requires_grad for parameter in model.parameters())
            self._measured[key] = step_seconds(model, cells, batch=BATCH, repeats=1) / BATCH if learns else 0.0
        return self._measured[key]


def signature_of(case: Case) -> OperatorSignature:
    """What a model of the case takes and gives."""
    entry = task_named(case.task)
    fields = len(case.fields) or len(entry.fields)
    return OperatorSignature(
        space_dims=len(entry.resolution),
        history=entry.history,
        in_channels=len(entry.input_fields) or fields,
        out_channels=fields,
        boundary=() if entry.equation is None else entry.equation.boundary,
        steady=entry.steady,
    )


def trained_frames(case: Case, choices: RunSettings) -> int:
    """Frames that go forward and backward through a model in a whole training.

    >>> case = scale_named("small").cases["darcy2d"]
    >>> choices = run_settings(Cell("main", "small", "darcy2d", "fno"), None)
    >>> trained_frames(case, choices) == 900 * case.training["epochs"]
    True
    """
    training, entry = choices.training, task_named(case.task)
    samples = round(0.9 * (choices.data.num_samples or case.num_samples))
    if entry.steady:
        return training.epochs * samples
    starts = (case.frames or entry.frames) - entry.history - training.horizon + 1
    return training.epochs * samples * max(1, starts) * training.horizon


def validated_frames(case: Case, choices: RunSettings) -> int:
    """Frames that are predicted for all validations."""
    entry = task_named(case.task)
    samples = round(0.1 * (choices.data.num_samples or case.num_samples))
    ahead = 1 if entry.steady else min(entry.horizon, (case.frames or entry.frames) - entry.history)
    return math.ceil(choices.training.epochs / choices.training.validate_epochs) * samples * ahead


def span(seconds: float) -> str:
    """A time in the unit that fits it.

    >>> span(50), span(600), span(86400)
    ('50 s', '10 min', '24.0 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
