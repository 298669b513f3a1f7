"""How the error falls with the number of samples: SpectraKAN and the strongest baselines."""

from __future__ import annotations

from spectrakan.experiments import main
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import Stage
from spectrakan.experiments.cells import Cell, with_choices
from spectrakan.experiments.learning_rates import rate_choice
from spectrakan.experiments.scales import Scale, scale_named
from spectrakan.experiments.summaries import NAMES, Results, row_name
from spectrakan.report.table import Column, Row, Score, Table

TABLE = "data_efficiency"


def stages(scale: Scale) -> list[Stage]:
    """The whole set comes from the main table; smaller sets are its first samples."""
    return [*main.stages(scale, [scale.efficiency_case])[:2], smaller_sets]


def smaller_sets(archive: Archive) -> list[Cell]:
    """Cells with fewer samples, trained for as many steps: epochs grow as samples shrink."""
    scale = scale_named(archive.scale)
    case = scale.efficiency_case
    epochs, whole = scale.cases[case].training["epochs"], scale.cases[case].num_samples
    return [
        Cell(
            TABLE,
            scale.name,
            case,
            model,
            choices=with_choices(
                rate_choice(archive, case, model),
                {"data.num_samples": count, "training.epochs": max(1, round(epochs * whole / count))},
            ),
            label=f"n{count}",
        )
        for count in scale.efficiency
        if count < whole
        for model in ("spectrakan", *main.strongest(archive, case))
    ]


def tables(archive: Archive) -> list[Table]:
    """RMSE against the number of samples, each trained for as many steps."""
    scale = scale_named(archive.scale)
    case = scale.efficiency_case
    smaller, whole = Results.of(archive, TABLE), Results.of(archive, main.TABLE)
    counts = [count for count in scale.efficiency if count < scale.cases[case].num_samples]
    rows = []
    for model in NAMES:
        found = [smaller.find(case, model, label=f"n{count}") for count in counts]
        if any(found):
            results = [*found, whole.find(case, model)]
            rows.append(Row(row_name(model), tuple(each.metric("rmse") if each else Score(None) for each in results)))
    if not rows:
        return []
    columns = tuple(Column(f"{count} samples") for count in (*counts, scale.cases[case].num_samples))
    note = "Samples for training and validation together; the same number of steps in every column."
    return [Table(f"Data efficiency: RMSE on {case}", columns, tuple(rows), (note,))]
