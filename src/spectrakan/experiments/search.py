"""Trials of a model on validation data alone: design decisions, before any test sample is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import Stage
from spectrakan.experiments.cells import Cell
from spectrakan.experiments.learning_rates import rate_choice
from spectrakan.experiments.scales import case_named, scale_named

TABLE = "search"


def stage(
    cases: Sequence[str],
    competitors: Sequence[tuple[str, str]],
    seeds: Sequence[int],
    changes: Sequence[str] = (),
    label: str = "",
) -> Stage:
    """Each model on each case with each seed, changed by `key=value` texts, named by `label`."""

    def cells(archive: Archive) -> list[Cell]:
        scale = scale_named(archive.scale)
        for case in cases:
            case_named(scale, case)
        return [
            Cell(
                TABLE,
                scale.name,
                case,
                model,
                variant,
                seed,
                choices=(*rate_choice(archive, case, model, variant), *changes),
                label=label,
                test=False,
            )
            for case in cases
            for model, variant in competitors
            for seed in seeds
        ]

    return cells
