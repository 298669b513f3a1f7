"""What each model costs beside what it errs: CPU seconds of training, parameters and memory."""

from __future__ import annotations

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.main import TABLE
from spectrakan.experiments.scales import FLOORS
from spectrakan.experiments.step_times import step_ratio
from spectrakan.experiments.summaries import NAMES, Result, Results, row_name
from spectrakan.report.table import Column, Row, Score, Table

NOTE = (
    "CPU seconds of the training process, validation included, mean over seeds; memory is the peak of the process, "
    "of which about 300 MB are Python and torch. Cells were trained at different hours of a shared machine: steps of "
    "all models taken in turns (`reproduce steps`) compare better."
)


def tables(archive: Archive) -> list[Table]:
    """One table a task: error against training seconds."""
    results = Results.of(archive, TABLE)
    return [_table(results, case, archive) for case in results.cases()]


def seconds(result: Result | None) -> Score:
    """CPU seconds of training."""
    return Score(None) if result is None else result.score(lambda record: record["train_seconds"])


def _table(results: Results, case: str, archive: Archive) -> Table:
    reference = seconds(results.find(case, "fno")).value
    columns = (
        Column("RMSE"),
        Column("CPU seconds", "neither"),
        Column("/ FNO's", "neither"),
        Column("step / FNO's", "neither"),
        Column("parameters", "neither"),
        Column("peak MB", "neither"),
    )
    found = [(model, variant) for model in NAMES for variant in ("default", "paper")]
    rows = []
    for model, variant in found:
        result = results.find(case, model, variant)
        if result is None:
            continue
        spent = seconds(result)
        relative = None if not reference or spent.value is None else spent.value / reference
        first = result.records[0]
        cells = (
            result.metric("rmse"),
            spent,
            Score(relative),
            Score(step_ratio(archive, case, model) if variant == "default" else None),
            f"{first['parameters']:,}",
            f"{first['peak_memory_mb']:.0f}",
        )
        rows.append(Row(row_name(model, variant), cells, ranked=model not in FLOORS))
    return Table(f"Accuracy and cost: {case}", columns, tuple(rows), (NOTE,))
