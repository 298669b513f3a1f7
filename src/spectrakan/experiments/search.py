"""Trials of a model on validation data alone: design decisions, before any test sample is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import Stage
from spectrakan.experiments.cells import Cell, run_settings
from spectrakan.experiments.learning_rates import rate_choice
from spectrakan.experiments.scales import case_named, scale_named
from spectrakan.experiments.summaries import row_name
from spectrakan.report.table import Column, Row, Score, Table

TABLE = "search"
NOTE = (
    "One seed each; what is not named is as in the default that came out of these trials. `history components` is a "
    "lift in principal components of the history, since given up; `component_floor` its smallest spread."
)


def stage(
    cases: Sequence[str],
    competitors: Sequence[tuple[str, str]],
    seeds: Sequence[int],
    changes: Sequence[str] = (),
    label: str = "",
) -> Stage:
    """Each model on each case with each seed, changed by `key=value` texts, named by `label`."""

    def cells(archive: Archive) -> list[Cell]:
        scale = scale_named(archive.scale)
        for case in cases:
            case_named(scale, case)
        return [
            Cell(
                TABLE,
                scale.name,
                case,
                model,
                variant,
                seed,
                choices=(*rate_choice(archive, case, model, variant), *changes),
                label=label,
                test=False,
            )
            for case in cases
            for model, variant in competitors
            for seed in seeds
        ]

    return cells


def tables(archive: Archive) -> list[Table]:
    """What was tried on each case before the test was read, rows of equal steps together."""
    records = archive.records(TABLE)
    cases = dict.fromkeys(record["details"]["case"] for record in records)
    columns = (
        Column("steps", "neither"),
        Column("validation RMSE", "neither"),
        Column("CPU seconds", "neither"),
        Column("parameters", "neither"),
    )
    made = []
    for case in cases:
        tried = [record for record in records if record["details"]["case"] == case]
        tried.sort(key=lambda record: (record["details"]["steps"], record["model"], _error(record)))
        rows = tuple(Row(_settings(record, archive.scale), _cells(record)) for record in tried)
        made.append(Table(f"Trials on {case}", columns, rows, (NOTE,), corner="trial"))
    return made


def _cells(record: dict[str, Any]) -> tuple[Score | str, ...]:
    return (
        str(record["details"]["steps"]),
        Score(_error(record)),
        Score(record["train_seconds"]),
        f"{record['parameters']:,}",
    )


def _error(record: dict[str, Any]) -> float:
    return float(record["details"]["validation"]["metrics"]["rmse"])


def _settings(record: dict[str, Any], scale: str) -> str:
    """The model, its learning rate, and in what it differed from its present default."""
    case, model, variant = record["details"]["case"], record["model"], record["variant"]
    now = run_settings(Cell(TABLE, scale, case, model, variant), None).model
    then, training = _known(record["config"]["model"]), record["config"]["training"]
    said = {key: value for key, value in then.items() if now.get(key) != value}
    said |= {key: training[key] for key in ("learning_rate", "noise") if training[key]}
    return f"{row_name(model, variant)}: " + ", ".join(f"{key} {value}" for key, value in said.items())


def _known(choices: dict[str, Any]) -> dict[str, Any]:
    """Choices of early trials in present words: settings that did not exist yet, and those that meant nothing."""
    frames = choices.get("history", "frames") == "frames"
    dropped = {"history", "component_floor"} if frames else set()
    added = {"memory_decay": 1.0} if choices["name"] in {"spectrakan", "amfno"} else {}
    return {**added, **{key: value for key, value in choices.items() if key not in dropped}}
