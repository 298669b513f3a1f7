"""Five times the horizon: made from the cells of the main table."""

from __future__ import annotations

from typing import Any

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.main import TABLE
from spectrakan.experiments.scales import FLOORS
from spectrakan.experiments.summaries import NAMES, Reading, Result, Results, row_name
from spectrakan.report.table import Column, Row, Table

NOTE = (
    "Median over the samples; a sample has blown up when it is not finite or further from the middle of the truth's "
    "range than ten times that range. No model was trained or chosen beyond one horizon."
)


def tables(archive: Archive) -> list[Table]:
    """For each task in time: error at the horizon, at five horizons, their ratio, and samples that blew up."""
    results = Results.of(archive, TABLE)
    made = []
    for case in results.cases():
        rows = [_row(result) for model in NAMES if (result := results.find(case, model)) and _known(result)]
        if rows:
            columns = (
                Column("at the horizon"),
                Column("at 5 horizons"),
                Column("growth", "neither"),
                Column("blown up", "neither"),
            )
            made.append(Table(f"Relative L2 along a five-fold rollout: {case}", columns, tuple(rows), (NOTE,)))
    return made


def _row(result: Result) -> Row:
    details: dict[str, Any] = result.records[0]["details"]["stability"]
    errors = (result.score(_read("at_horizon")), result.score(_read("at_end")), result.score(_read("growth")))
    lost = f"{details['blown_up']} of {details['num_samples']}"
    return Row(row_name(result.model), (*errors, lost), ranked=result.model not in FLOORS)


def _known(result: Result) -> bool:
    return all("stability" in record["details"] for record in result.records)


def _read(name: str) -> Reading:
    return lambda record: record["details"]["stability"][name]
