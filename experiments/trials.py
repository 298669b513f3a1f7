"""Trials of a model before any test sample is read: on validation data, and on development samples.

Development samples are none of training, validation or test. They have a seed of their own and may be scored as often
as needed; a decision that is made on them counts as made on validation data.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from experiments.archive import Archive
from experiments.campaign import Stage
from experiments.cells import Cell, run_settings
from experiments.datasets import Datasets
from experiments.main import TABLE as MAIN
from experiments.scales import DEVELOPMENT_SEED, scale_named
from experiments.summaries import row_name
from spectrakan.evaluation import evaluate
from spectrakan.models import from_pretrained
from spectrakan.report.table import Column, Row, Score, Table
from spectrakan.storage import write_text_atomically

TABLE = "search"
RATES = "rates"
"""Trials of learning rates, which count too."""
NOTE = "One seed each; a row names the settings that differ from the preset, or the trial's label."
DEVELOPMENT_FILE = "development.json"
PROTOTYPES_FILE = "prototypes.jsonl"
"""Trials of code that was not kept, a line each."""

Scores = dict[str, dict[str, Any]]
"""Seed and number of the samples and scores of runs, by case."""


def stage(
    cases: Sequence[str],
    competitors: Sequence[tuple[str, str]],
    seeds: Sequence[int],
    overrides: Sequence[str] = (),
    label: str = "",
) -> Stage:
    """Each model on each case with each seed, changed by `key=value` texts, which are checked, named by `label`."""

    def cells(archive: Archive) -> list[Cell]:
        made = [
            Cell(TABLE, archive.scale, case, model, variant, seed, tuple(overrides), label, test=False)
            for case in cases
            for model, variant in competitors
            for seed in seeds
        ]
        for cell in made:
            run_settings(cell)
        return made

    return cells


def trial_counts(archive: Archive) -> dict[tuple[str, str], int]:
    """How many development trials each (case, model) has had: rates, settings, seeds, and code that was not kept.

    The paper's literal model is a competitor of its own, `spectrakan/paper`. Records with the same seed and the same
    validation error to the last digit are one trial that was run twice.
    """
    records = [record for table in (TABLE, RATES) for record in archive.records(table)]
    trials = dict.fromkeys(
        (record["details"]["case"], _competitor(record), record["seed"], _error(record))
        for number, record in enumerate(records)
    )
    pairs = [(case, competitor) for case, competitor, *_ in trials]
    path = archive.folder / PROTOTYPES_FILE
    lines = path.read_text().splitlines() if path.is_file() else []
    pairs += [(prototype["case"], prototype["model"]) for prototype in map(json.loads, lines)]
    return dict(Counter(pairs))


def _competitor(record: dict[str, Any]) -> str:
    return f"{record['model']}/paper" if record["variant"] == "paper" else str(record["model"])


def tables(archive: Archive) -> list[Table]:
    """What was tried on each case before the test was read, rows of equal steps together."""
    records = archive.records(TABLE)
    columns = tuple(Column(name, "neither") for name in ("steps", "validation RMSE", "CPU seconds", "parameters"))
    made = []
    for case in dict.fromkeys(record["details"]["case"] for record in records):
        tried = [record for record in records if record["details"]["case"] == case]
        tried.sort(key=lambda record: (record["details"]["steps"], record["model"], _error(record)))
        rows = tuple(Row(_row_name(record), _cells(record)) for record in tried)
        made.append(Table(f"Trials on {case}", columns, rows, (NOTE,), corner="trial"))
    return made


def _row_name(record: dict[str, Any]) -> str:
    details = record["details"]
    changed = ", ".join(details.get("overrides", ())) or details["label"] or "preset"
    return f"{row_name(record['model'], record['variant'])}: {changed}"


def _cells(record: dict[str, Any]) -> tuple[Score | str, ...]:
    steps, parameters = str(record["details"]["steps"]), f"{record['parameters']:,}"
    return (steps, Score(_error(record)), Score(record["train_seconds"]), parameters)


def _error(record: dict[str, Any]) -> float:
    value = record["details"]["validation"]["metrics"]["rmse"]
    return float("inf") if value is None else float(value)


def measure_development(
    archive: Archive,
    *,
    cases: Sequence[str] = (),
    models: Sequence[str] = (),
    label: str = "",
    tell: Callable[[str], None] = print,
) -> Scores:
    """Score the weights of the main table, or of the trials with a label, as far as the cache has them; keep all."""
    path = archive.folder / DEVELOPMENT_FILE
    found: Scores = json.loads(path.read_text()) if path.is_file() else {}
    for case in cases or scale_named(archive.scale).main_cases:
        data = Datasets(archive).development(case)
        if data is None:
            continue
        known = found.setdefault(case, {"seed": DEVELOPMENT_SEED, "samples": data.num_samples, "runs": {}})
        for record in archive.records(TABLE if label else MAIN):
            if (record["details"]["case"], record["details"]["label"]) != (case, label):
                continue
            folder = archive.kept_run(record)
            if (models and record["model"] not in models) or not folder.best.is_dir():
                continue
            name = "-".join(filter(None, [record["model"], record["variant"], f"s{record['seed']}", label]))
            horizon = record["details"]["validation"]["horizon"]
            scores = evaluate(from_pretrained(folder.best), data, horizon=horizon)
            known["runs"][name] = scores["metrics"]
            tell(f"{case} {name}: development rmse {scores['metrics']['rmse']:.4g}")
            write_text_atomically(path, json.dumps(found, indent=2, sort_keys=True) + "\n")
    return found
