"""The main table: every model on every case, several seeds for SpectraKAN and the strongest baselines.

Its records hold all nine metrics, per field and frame, other resolutions and long rollouts, so that the droplet,
super-resolution, appendix and stability tables are made from the same trained models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from experiments.archive import Archive
from experiments.campaign import Stage
from experiments.cells import Cell
from experiments.scales import BASELINES, FIELDS_CASE, MAIN_CASES, PEERS, Scale, case_named, scale_named
from experiments.standings import Contest, standings
from experiments.summaries import Results
from spectrakan.report.published import paper_cell
from spectrakan.report.table import Table

TABLE = "main"
FIELDS_TABLE = "fields"
OURS: tuple[tuple[str, str], ...] = (("spectrakan", "default"), ("spectrakan", "paper"))
STRONGEST = 1
"""Baselines, peers among them, of each case that get as many seeds as SpectraKAN."""


def competitors(scale: Scale) -> list[tuple[str, str]]:
    """Models that are trained, as (model, variant)."""
    return [*OURS, *((model, "default") for model in (*scale.baselines, *scale.peers))]


def stages(scale: Scale, cases: Sequence[str] = ()) -> list[Stage]:
    """Every model's first seed, then further seeds of SpectraKAN and of the best on validation."""
    kept = [case for case in scale.main_cases if not cases or case in cases]

    def first(archive: Archive) -> list[Cell]:
        return [cell for case in kept for cell in first_seeds(archive, case)]

    def further(archive: Archive) -> list[Cell]:
        return [cell for case in kept for cell in further_seeds(archive, case)]

    return [first, further]


def first_seeds(archive: Archive, case: str, table: str = TABLE) -> list[Cell]:
    """All competitors and trivial baselines with the first seed; a steady problem has no last frame to persist."""
    scale = scale_named(archive.scale)
    steady = case_named(case).problem.steady
    trivial = [(model, "default") for model in scale.trivial if not (steady and model == "persistence")]
    return [Cell(table, scale.name, case, *named, seed=scale.seeds[0]) for named in (*competitors(scale), *trivial)]


def further_seeds(archive: Archive, case: str) -> list[Cell]:
    """SpectraKAN's default and the strongest baselines of the case, with the other seeds."""
    scale = scale_named(archive.scale)
    models = ("spectrakan", *strongest(archive, case))
    return [Cell(TABLE, scale.name, case, model, seed=seed) for seed in scale.seeds[1:] for model in models]


def strongest(archive: Archive, case: str) -> list[str]:
    """The baselines with the smallest validation RMSE of the first seed; test scores play no part."""
    scores: dict[str, float] = {}
    for model in (*BASELINES, *PEERS):
        record = archive.record(Cell(TABLE, archive.scale, case, model))
        if record is not None:
            scores[model] = _validation_rmse(record)
    return sorted(scores, key=lambda model: scores[model])[:STRONGEST]


def fields_stages(scale: Scale) -> list[Stage]:
    """The extra row: shallow water with all three fields, first seed."""
    if FIELDS_CASE not in scale.cases:
        return []
    return [lambda archive: first_seeds(archive, FIELDS_CASE, FIELDS_TABLE)]


def _validation_rmse(record: dict[str, Any]) -> float:
    value = record["details"]["validation"]["metrics"].get("rmse")
    return math.inf if value is None else float(value)


def contests(results: Results) -> list[Contest]:
    """The columns of the table for which there are records."""
    return [
        Contest.of_metric(case, "rmse", paper_cell("main", case, "rmse"))
        for case in MAIN_CASES
        if case in results.cases()
    ]


def tables(archive: Archive) -> list[Table]:
    """RMSE of every model on every case, and shallow water with all three fields where it was run."""
    results = Results.of(archive, TABLE)
    columns = contests(results)
    made = [standings("RMSE on the test set", results, columns)] if columns else []
    fields = Results.of(archive, FIELDS_TABLE)
    if fields.cases():
        extra = [Contest.of_metric(FIELDS_CASE, "rmse", {}, "shallow_water2d, three fields")]
        made.append(standings("RMSE of shallow water with depth and velocities", fields, extra))
    return made
