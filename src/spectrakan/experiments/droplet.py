"""The falling droplet, field by field: made from the cells of the main table."""

from __future__ import annotations

from typing import Any

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.main import TABLE
from spectrakan.experiments.scales import FLOORS
from spectrakan.experiments.standings import Contest, Verdict, standings, verdict
from spectrakan.experiments.summaries import Reading, Results
from spectrakan.report.published import DROPLET_FIELDS, paper_cell
from spectrakan.report.table import Table

CASE = "droplet2d"


def tables(archive: Archive) -> list[Table]:
    """Relative L2 of each field, over all frames of the case and at the times that the paper scores."""
    results = Results.of(archive, TABLE)
    if CASE not in results.cases():
        return []
    whole = [Contest(ours, CASE, _over_all(ours), _paper(theirs)) for ours, theirs in DROPLET_FIELDS.items()]
    at_times = contests()
    return [
        standings(
            "Relative L2 of the droplet's fields at t = 0.11, 0.16, 0.21, 0.26, 0.31", results, at_times, FLOORS
        ),
        standings("Relative L2 of the droplet's fields over the frames of training", results, whole, FLOORS),
    ]


def contests() -> list[Contest]:
    """The fields at the times that the paper scores."""
    return [Contest(ours, CASE, _at_times(ours), _paper(theirs)) for ours, theirs in DROPLET_FIELDS.items()]


def verdicts(archive: Archive) -> list[Verdict]:
    """How SpectraKAN stands in each field."""
    results = Results.of(archive, TABLE)
    found = [verdict(results, contest) for contest in contests()]
    return [each for each in found if each is not None]


def _paper(field: str) -> dict[str, float]:
    return paper_cell("droplet", CASE, "relative_l2", field)


def _over_all(field: str) -> Reading:
    return lambda record: _score(record["metrics_per_field"], field)


def _at_times(field: str) -> Reading:
    return lambda record: _score(record["details"].get("scored_times", {}).get("metrics_per_field", {}), field)


def _score(by_field: dict[str, Any], field: str) -> float | None:
    value: float | None = by_field.get(field, {}).get("relative_l2")
    return value
