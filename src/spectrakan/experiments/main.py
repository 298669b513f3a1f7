"""The main table: every model on every task, seeds for SpectraKAN and its strongest rivals.

Its records hold all nine metrics, per field and frame, other resolutions and long rollouts, so that the droplet,
super-resolution, appendix and stability tables are made from the same trained models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from spectrakan.data.catalog import task as task_named
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import Stage
from spectrakan.experiments.cells import Cell
from spectrakan.experiments.learning_rates import rate_choice, rates_stage
from spectrakan.experiments.scales import FLOORS, Scale, scale_named
from spectrakan.experiments.standings import Contest, standings
from spectrakan.experiments.summaries import Results
from spectrakan.report.published import paper_cell
from spectrakan.report.table import Table

TABLE = "main"
FIELDS_TABLE = "fields"
FIELDS_CASE = "shallow_water2d_fields"
OURS: tuple[tuple[str, str], ...] = (("spectrakan", "default"), ("spectrakan", "paper"))
STRONGEST = 2
"""Baselines of each task that get as many seeds as SpectraKAN."""


def competitors(scale: Scale) -> list[tuple[str, str]]:
    """Models that are trained, as (model, variant)."""
    return [*OURS, *((model, "default") for model in scale.baselines)]


def main_cases(scale: Scale) -> list[str]:
    """The tasks of the table; shallow water by height alone, as in the paper."""
    return [case for case in scale.cases if case != FIELDS_CASE]


def stages(scale: Scale, cases: Sequence[str] = ()) -> list[Stage]:
    """Rates, then everybody's first seed, then further seeds of those who lead on validation."""
    kept = [case for case in main_cases(scale) if not cases or case in cases]

    def first(archive: Archive) -> list[Cell]:
        return [cell for case in kept for cell in first_seeds(archive, case)]

    def further(archive: Archive) -> list[Cell]:
        return [cell for case in kept for cell in further_seeds(archive, case)]

    return [rates_stage(competitors(scale)), first, further]


def first_seeds(archive: Archive, case: str, table: str = TABLE) -> list[Cell]:
    """All competitors and floors with the first seed; a steady task has no last frame to persist."""
    scale = scale_named(archive.scale)
    steady = task_named(scale.cases[case].task).steady
    floors = [floor for floor in scale.floors if not (steady and floor == "persistence")]
    trained = [cell_of(archive, case, model, variant, scale.seeds[0], table) for model, variant in competitors(scale)]
    return [*trained, *(Cell(table, scale.name, case, floor, seed=scale.seeds[0]) for floor in floors)]


def further_seeds(archive: Archive, case: str) -> list[Cell]:
    """SpectraKAN's default and the strongest baselines of the case, with the other seeds."""
    scale = scale_named(archive.scale)
    return [
        cell_of(archive, case, model, "default", seed)
        for seed in scale.seeds[1:]
        for model in ("spectrakan", *strongest(archive, case))
    ]


def cell_of(
    archive: Archive, case: str, model: str, variant: str = "default", seed: int = 0, table: str = TABLE
) -> Cell:
    """A cell with its chosen learning rate."""
    choices = rate_choice(archive, case, model, variant)
    return Cell(table, archive.scale, case, model, variant, seed, choices=choices)


def strongest(archive: Archive, case: str) -> list[str]:
    """The baselines with the smallest validation RMSE of the first seed; test scores play no part."""
    scale = scale_named(archive.scale)
    scores: dict[str, float] = {}
    for model in scale.baselines:
        record = archive.record(Cell(TABLE, scale.name, case, model, seed=scale.seeds[0]))
        if record is not None:
            scores[model] = _validation_rmse(record)
    return sorted(scores, key=lambda model: scores[model])[:STRONGEST]


def fields_stages(scale: Scale) -> list[Stage]:
    """The extra row: shallow water with all three fields, first seed."""
    if FIELDS_CASE not in scale.cases:
        return []
    return [rates_stage(competitors(scale)), lambda archive: first_seeds(archive, FIELDS_CASE, FIELDS_TABLE)]


def _validation_rmse(record: dict[str, Any]) -> float:
    value = record["details"]["validation"]["metrics"].get("rmse")
    return math.inf if value is None else float(value)


def tables(archive: Archive) -> list[Table]:
    """RMSE of every model on every task, and shallow water with all three fields where it was run."""
    scale = scale_named(archive.scale)
    results = Results.of(archive, TABLE)
    contests = [
        Contest.of_metric(case, "rmse", paper_cell("main", case, "rmse"))
        for case in main_cases(scale)
        if case in results.cases()
    ]
    made = [standings("RMSE on the test set", results, contests, FLOORS)] if contests else []
    fields = Results.of(archive, FIELDS_TABLE)
    if fields.cases():
        extra = [Contest.of_metric(FIELDS_CASE, "rmse", {}, "shallow_water2d, three fields")]
        made.append(standings("RMSE of shallow water with depth and velocities", fields, extra, FLOORS))
    return made
