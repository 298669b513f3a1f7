"""`spectrakan compare`: several runs in one table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from spectrakan.errors import ConfigError
from spectrakan.report import Column, Row, Score, Table, export_table, to_rich
from spectrakan.report.published import paper_score
from spectrakan.runs import RunFolder, read_record

METRICS = ("relative_l2", "nrmse", "rmse", "max_error", "crmse", "brmse", "frmse_low", "frmse_mid", "frmse_high")


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, or records.")],
    export: Annotated[
        list[Path] | None, typer.Option(help="File to write the table to: .md, .tex or .csv; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Put the test scores of finished runs side by side, the best first.

    The best of a column is bold, the second best underlined; the paper's value stands beside it in brackets.

    \b
    spectrakan compare runs/droplet2d-*
    spectrakan compare runs/darcy2d-* --export darcy.md --export darcy.tex
    """
    records = {str(path): _record(path) for path in runs}
    tasks = {record["task"] for record in records.values()}
    if len(tasks) > 1:
        raise ConfigError(f"runs of different tasks cannot be compared: {', '.join(sorted(tasks))}")
    ordered = dict(sorted(records.items(), key=lambda item: _first_score(item[1])))
    for path in export or []:
        export_table(comparison(ordered), path)
    if as_json:
        print(json.dumps(ordered, indent=2))
        return
    print_comparison(ordered)


def print_comparison(records: dict[str, dict[str, Any]]) -> None:
    """A table of records: one row a run, one column a metric."""
    table = comparison(records)
    Console(highlight=False, width=None if sys.stdout.isatty() else 240).print(to_rich(table))
    for note in table.notes:
        print(note)


def comparison(records: dict[str, dict[str, Any]]) -> Table:
    """Records of one task as a table, with the paper's numbers where it has the task, the metric and the model."""
    facts = tuple(Column(title, "neither") for title in ("model", "parameters", "seconds"))
    columns = (*facts, *(Column(metric) for metric in METRICS))
    rows = tuple(Row(name, (*_facts(record), *_scores(record))) for name, record in records.items())
    notes = []
    if any(isinstance(cell, Score) and cell.paper is not None for row in rows for cell in row.cells):
        notes.append("In brackets: the paper's value for that model, of its own data, sizes and training.")
    if len({record["provenance"]["data_sha256"] for record in records.values()}) > 1:
        notes.append("These runs saw different data, so their scores are not of the same test samples.")
    return Table(next(iter(records.values()))["task"], columns, rows, tuple(notes), corner="run")


def _facts(record: dict[str, Any]) -> tuple[str, str, str]:
    return record["model"], str(record["parameters"]), f"{record['train_seconds']:.0f}"


def _scores(record: dict[str, Any]) -> tuple[Score, ...]:
    return tuple(
        Score(record["metrics"].get(metric), paper=paper_score(record["task"], metric, record["model"]))
        for metric in METRICS
    )


def _record(path: Path) -> dict[str, Any]:
    if path.is_file():
        return read_record(path)
    folder = RunFolder(path)
    if not folder.finished:
        state = (
            "is not finished; go on with `spectrakan train --resume`" if folder.started else "is not a run's folder"
        )
        raise ConfigError(f"'{path}' {state}")
    return read_record(folder.record)


def _first_score(record: dict[str, Any]) -> float:
    value = record["metrics"].get(METRICS[0])
    return float("inf") if value is None else float(value)
