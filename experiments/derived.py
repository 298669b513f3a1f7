"""Tables of droplets by field, other resolutions and long rollouts, from the cells of the main table."""

from __future__ import annotations

from typing import Any

from experiments.archive import Archive
from experiments.main import TABLE
from experiments.scales import TRIVIAL
from experiments.standings import Contest, standings
from experiments.summaries import NAMES, Reading, Result, Results, metric_of, row_name
from spectrakan.models.catalog import MODELS
from spectrakan.report.published import paper_cell
from spectrakan.report.table import Column, Row, Score, Table

DROPLET, WATER = "droplet2d", "shallow_water2d"
DROPLET_FIELDS = {"rho": "rho", "velocity_x": "u", "velocity_y": "v"}
"""Our names of the droplet's fields -> the paper's."""
STABILITY_NOTE = (
    "Median over the samples; a sample has blown up when it is not finite or further from the middle of the truth's "
    "range than ten times that range. No model was trained or chosen beyond one horizon."
)


def droplet_tables(archive: Archive) -> list[Table]:
    """Relative L2 of each field of the droplet, at the times that the paper scores and over all frames."""
    results = Results.of(archive, TABLE)
    if DROPLET not in results.cases():
        return []

    def contests(at_times: bool) -> list[Contest]:
        return [
            Contest(ours, DROPLET, _of_field(ours, at_times), paper_cell("droplet", DROPLET, "relative_l2", theirs))
            for ours, theirs in DROPLET_FIELDS.items()
        ]

    times = "t = 0.11, 0.16, 0.21, 0.26, 0.31"
    return [
        standings(f"Relative L2 of the droplet's fields at {times}", results, contests(at_times=True)),
        standings("Relative L2 of the droplet's fields over the frames of training", results, contests(False)),
    ]


def _of_field(field: str, at_times: bool) -> Reading:
    def read(record: dict[str, Any]) -> float | None:
        scores = record["details"].get("scored_times", {}) if at_times else record
        value: float | None = scores.get("metrics_per_field", {}).get(field, {}).get("relative_l2")
        return value

    return read


def resolution_tables(archive: Archive) -> list[Table]:
    """RMSE at resolutions that were not trained at, table (c) of the paper, and its ratio to that at the trained one.

    Test samples of all resolutions start from the same initial states.
    """
    results = Results.of(archive, TABLE)
    if WATER not in results.cases():
        return []
    first = results.first(WATER)
    own, resolutions = first["resolution"][0], [int(cells) for cells in first["details"].get("resolutions", ())]
    paper = {cells: paper_cell("super_resolution", WATER, "rmse", str(cells)) for cells in (32, 64, 128)}
    trained = Contest(f"{own}² (trained)", WATER, metric_of("rmse"), paper.get(own, {}))
    others = [Contest(f"{cells}²", WATER, _at_resolution(cells), paper.get(cells, {})) for cells in resolutions]
    rows = []
    for model in NAMES:
        result = results.find(WATER, model)
        if result is None or model in TRIVIAL:
            continue
        here = result.metric("rmse").value
        growth = [
            Score(
                _ratio(result.score(_at_resolution(cells)).value, here),
                paper=_ratio(paper.get(cells, {}).get(model), paper.get(own, {}).get(model)),
            )
            for cells in resolutions
        ]
        rows.append(Row(row_name(model), (*growth, MODELS[model].refinement)))
    columns = (*(Column(f"error at {n}² / at {own}²") for n in resolutions), Column("on another grid", "neither"))
    return [
        standings("RMSE of shallow water at other resolutions", results, [trained, *others]),
        Table("Growth of the error at other resolutions", columns, tuple(rows), ("In brackets the paper's.",)),
    ]


def _at_resolution(cells: int) -> Reading:
    def read(record: dict[str, Any]) -> float | None:
        scores = record["details"].get("resolutions", {}).get(str(cells))
        return None if scores is None else scores["metrics"]["rmse"]

    return read


def _ratio(there: float | None, here: float | None) -> float | None:
    return None if there is None or not here else there / here


def stability_tables(archive: Archive) -> list[Table]:
    """For each case in time: error at the horizon, at five horizons, their ratio, and samples that blew up."""
    results = Results.of(archive, TABLE)
    columns = (
        Column("at the horizon"),
        Column("at 5 horizons"),
        Column("growth", "neither"),
        Column("blown up", "neither"),
    )
    made = []
    for case in results.cases():
        found = [result for model in NAMES if (result := results.find(case, model))]
        rows = tuple(
            _long_row(result) for result in found if all("stability" in r["details"] for r in result.records)
        )
        if rows:
            made.append(Table(f"Relative L2 along a five-fold rollout: {case}", columns, rows, (STABILITY_NOTE,)))
    return made


def _long_row(result: Result) -> Row:
    def score(name: str) -> Score:
        return result.score(lambda record: record["details"]["stability"][name])

    first: dict[str, Any] = result.records[0]["details"]["stability"]
    lost = f"{first['blown_up']} of {first['num_samples']}"
    cells = (score("at_horizon"), score("at_end"), score("growth"), lost)
    return Row(row_name(result.model), cells, ranked=result.model not in TRIVIAL)
