"""Problems that no preset was tuned on: SpectraKAN, FNO and F-FNO with the library's defaults, nothing chosen.

Cells have the settings that `sk.train(data=...)` gives data of a user (`experiments/unseen/catalog`). SpectraKAN is
compared with the better of FNO and F-FNO, by their mean error on the test.
"""

from __future__ import annotations

from experiments.archive import Archive
from experiments.campaign import Stage
from experiments.cells import Cell
from experiments.comparison import LEAST_SEEDS, compare
from experiments.scales import Scale
from experiments.summaries import Results, metric_of, row_name
from experiments.unseen.catalog import UNSEEN
from spectrakan.report.table import Column, Row, Score, Table

TABLE = "unseen"
OURS = "spectrakan"
RIVALS = ("fno", "ffno")
SEEDS = 3


def stages(scale: Scale) -> list[Stage]:
    """The three models with three seeds, seed by seed, and trivial baselines with one."""
    cases = [case for case in UNSEEN if case in scale.cases]

    def cells(archive: Archive) -> list[Cell]:
        trained = [(seed, model) for seed in scale.seeds[:SEEDS] for model in (OURS, *RIVALS)]
        trivial = [(scale.seeds[0], model) for model in scale.trivial]
        return [
            Cell(TABLE, scale.name, case, model, seed=seed) for seed, model in (*trained, *trivial) for case in cases
        ]

    return [cells] if cases else []


def tables(archive: Archive) -> list[Table]:
    """RMSE of rollouts on the test, with the verdicts."""
    results = Results.of(archive, TABLE)
    cases, reading = results.cases(), metric_of("rmse")
    if not cases:
        return []
    rows = []
    for model in results.models():
        found = [results.find(case, model) for case in cases]
        cells = tuple(Score(None) if each is None else each.score(reading) for each in found)
        rows.append(Row(row_name(model), cells, ranked=model in (OURS, *RIVALS)))
    budgets = "Steps (epochs): " + ", ".join(f"{case} {_budget(results, case)}" for case in cases) + "."
    notes = (budgets, *(f"{case}: {sentence}" for case, sentence in verdicts(results).items()))
    columns = tuple(Column(case) for case in cases)
    return [Table("Problems that no preset was tuned on: RMSE of rollouts", columns, tuple(rows), notes)]


def verdicts(results: Results) -> dict[str, str]:
    """SpectraKAN against the better rival on each problem, corrected over the problems."""
    pairs, names = {}, {}
    for case in results.cases():
        errors = {model: _errors(results, case, model) for model in (OURS, *RIVALS)}
        if min(len(each) for each in errors.values()) >= LEAST_SEEDS:
            names[case] = min(RIVALS, key=lambda model: sum(errors[model]) / len(errors[model]))
            pairs[case] = (errors[OURS], errors[names[case]])
    return {
        case: f"{found.ratio:.3f} of {row_name(names[case])} (p = {found.corrected:.3f}): {found.verdict}"
        for case, found in compare(pairs).items()
    }


def _errors(results: Results, case: str, model: str) -> list[float]:
    """Errors of the seeds; none where a seed has no finite one."""
    found = results.find(case, model)
    values = [] if found is None else [record["metrics"].get("rmse") for record in found.records]
    return [] if None in values else values


def _budget(results: Results, case: str) -> str:
    trained = [found for model in (OURS, *RIVALS) if (found := results.find(case, model)) is not None]
    if not trained:
        return "–"
    record = trained[0].records[0]
    return f"{record['details']['steps']:,} ({record['config']['training']['epochs']})"
