"""Other resolutions than the one trained at, without training: table (c) of the paper.

Test samples are solved anew at each resolution from the same initial states, not resampled.
"""

from __future__ import annotations

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.main import TABLE
from spectrakan.experiments.scales import FLOORS, scale_named
from spectrakan.experiments.standings import Contest, standings
from spectrakan.experiments.summaries import NAMES, Reading, Results, metric_of, row_name
from spectrakan.models.abilities import ABILITIES
from spectrakan.report.published import paper_cell
from spectrakan.report.table import Column, Row, Score, Table

CASE = "shallow_water2d"


def tables(archive: Archive) -> list[Table]:
    """RMSE at each resolution, and how many times the error of the trained one that is."""
    results = Results.of(archive, TABLE)
    if CASE not in results.cases():
        return []
    case = scale_named(archive.scale).cases[CASE]
    paper = {cells: paper_cell("super_resolution", CASE, "rmse", str(cells)) for cells in (32, 64, 128)}
    own = Contest(f"{case.resolution}² (trained)", CASE, metric_of("rmse"), paper.get(case.resolution or 0, {}))
    others = [Contest(f"{cells}²", CASE, at_resolution(cells), paper.get(cells, {})) for cells in case.resolutions]
    return [
        standings("RMSE of shallow water at other resolutions", results, [own, *others], FLOORS),
        _growth(results, case.resolution or 0, case.resolutions, paper),
    ]


def at_resolution(cells: int) -> Reading:
    """Read the RMSE at a resolution."""

    def read(record: dict[str, object]) -> float | None:
        found = record["details"]
        scores = found.get("resolutions", {}).get(str(cells)) if isinstance(found, dict) else None
        return None if scores is None else scores["metrics"]["rmse"]

    return read


def _growth(results: Results, own: int, cells: tuple[int, ...], paper: dict[int, dict[str, float]]) -> Table:
    rows = []
    for model in NAMES:
        result = results.find(CASE, model)
        if result is None or model in FLOORS:
            continue
        here = result.metric("rmse").value
        scores = tuple(
            _grown(result.score(at_resolution(n)).value, here, _paper(paper, model, n, own)) for n in cells
        )
        rows.append(Row(row_name(model), (*scores, ABILITIES[model].refinement)))
    columns = (*(Column(f"error at {n}² / at {own}²") for n in cells), Column("on another grid", "neither"))
    return Table("Growth of the error at other resolutions", columns, tuple(rows), ("In brackets the paper's.",))


def _grown(there: float | None, here: float | None, paper: float | None) -> Score:
    return Score(None if there is None or not here else there / here, paper=paper)


def _paper(paper: dict[int, dict[str, float]], model: str, cells: int, own: int) -> float | None:
    there, here = paper.get(cells, {}).get(model), paper.get(own, {}).get(model)
    return None if there is None or here is None else there / here
