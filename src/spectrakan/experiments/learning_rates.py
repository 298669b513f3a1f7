"""The learning rate of each model: the best of the same three, on validation data, in short runs.

Once for models on 1 axis, once on 2. A rate is tried with a share of the case's epochs; the trial with the smallest
relative L2 of validation rollouts wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import Stage
from spectrakan.experiments.cells import Cell, axes_of
from spectrakan.experiments.scales import Scale, scale_named
from spectrakan.training import TrainingSettings

TABLE = "rates"


def rate_cells(scale: Scale, competitors: Sequence[tuple[str, str]]) -> list[Cell]:
    """Trials of every rate for every (model, variant), without a test."""
    return [
        _trial(scale, case, model, variant, rate)
        for case in scale.rate_cases.values()
        for model, variant in competitors
        for rate in scale.rates
    ]


def rates_stage(competitors: Sequence[tuple[str, str]]) -> Stage:
    """The stage that must be finished before the tables begin."""
    return lambda archive: rate_cells(scale_named(archive.scale), competitors)


def chosen_rate(archive: Archive, case: str, model: str, variant: str = "default") -> float | None:
    """The rate that a model's trials have chosen for a case; None without all trials.

    An ablation has the rate of the default that it takes something from.
    """
    scale = scale_named(archive.scale)
    tried_on, tried = scale.rate_cases[axes_of(scale, case)], variant if variant == "paper" else "default"
    trials = {rate: archive.record(_trial(scale, tried_on, model, tried, rate)) for rate in scale.rates}
    if any(record is None for record in trials.values()):
        return None
    scores = {rate: _score(record) for rate, record in trials.items() if record is not None}
    return min(scores, key=lambda rate: scores[rate])


def rate_choice(archive: Archive, case: str, model: str, variant: str = "default") -> tuple[str, ...]:
    """The chosen rate as a setting of a cell; without trials, the default of training."""
    rate = chosen_rate(archive, case, model, variant)
    return (f"training.learning_rate={TrainingSettings().learning_rate if rate is None else rate}",)


def _trial(scale: Scale, case: str, model: str, variant: str, rate: float) -> Cell:
    epochs = max(1, round(scale.rate_share * scale.cases[case].training["epochs"]))
    return Cell(
        table=TABLE,
        scale=scale.name,
        case=case,
        model=model,
        variant=variant,
        choices=(f"training.learning_rate={rate}", f"training.epochs={epochs}"),
        label=f"lr{rate:g}",
        test=False,
    )


def _score(record: dict[str, Any]) -> float:
    value = record["details"]["validation"]["metrics"].get("relative_l2")
    return math.inf if value is None else float(value)
