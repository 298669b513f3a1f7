"""How the error falls with the number of samples: SpectraKAN and the strongest baselines."""

from __future__ import annotations

from experiments import main
from experiments.archive import Archive
from experiments.campaign import Stage
from experiments.cells import Cell, as_overrides, case_settings
from experiments.scales import Scale, scale_named
from experiments.summaries import NAMES, Result, Results, row_name
from spectrakan.report.table import Column, Row, Score, Table

TABLE = "data_efficiency"


def stages(scale: Scale) -> list[Stage]:
    """The whole set comes from the main table; smaller sets are its first samples."""
    return [main.stages(scale, [scale.efficiency_case])[0], smaller_sets]


def smaller_sets(archive: Archive) -> list[Cell]:
    """Cells with fewer samples, trained for as many steps: epochs grow as samples shrink."""
    scale = scale_named(archive.scale)
    config = case_settings(scale.name, scale.efficiency_case)
    epochs, whole = config.training.epochs, config.data.num_samples or 0
    cells = []
    for count in scale.efficiency:
        fewer = {"data.num_samples": count, "training.epochs": max(1, round(epochs * whole / count))}
        for model in ("spectrakan", *main.strongest(archive, scale.efficiency_case)):
            named = (TABLE, scale.name, scale.efficiency_case, model)
            cells.append(Cell(*named, overrides=as_overrides(fewer), label=f"n{count}"))
    return cells


def results_by_count(archive: Archive, case: str) -> tuple[list[int], dict[str, list[Result | None]]]:
    """Numbers of samples, the whole set last, and each model's results at them; models without smaller sets apart."""
    smaller, whole = Results.of(archive, TABLE), Results.of(archive, main.TABLE)
    counts = sorted(int(label[1:]) for label in smaller.labels(case))
    found = {}
    for model in NAMES:
        few = [smaller.find(case, model, label=f"n{count}") for count in counts]
        if any(few):
            found[model] = [*few, whole.find(case, model)]
    full = [result.records[0]["num_samples"] for results in found.values() if (result := results[-1])]
    return [*counts, full[0] if full else 0], found


def cases(archive: Archive) -> list[str]:
    """Cases that have records of smaller sets."""
    return Results.of(archive, TABLE).cases()


def tables(archive: Archive) -> list[Table]:
    """RMSE against the number of samples, each trained for as many steps."""
    note = "Samples for training and validation together; the same number of steps in every column."
    made = []
    for case in cases(archive):
        counts, found = results_by_count(archive, case)
        rows = tuple(
            Row(row_name(model), tuple(each.metric("rmse") if each else Score(None) for each in results))
            for model, results in found.items()
        )
        columns = tuple(Column(f"{count} samples") for count in counts)
        made.append(Table(f"Data efficiency: RMSE on {case}", columns, rows, (note,)))
    return made
