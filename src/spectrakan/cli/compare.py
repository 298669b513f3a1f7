"""`spectrakan compare`: several runs in one table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from spectrakan.errors import ConfigError
from spectrakan.runs import RunFolder, read_record

COLUMNS = ("relative_l2", "nrmse", "rmse", "max_error", "crmse", "brmse", "frmse_low", "frmse_mid", "frmse_high")


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Put the test scores of finished runs side by side, the best first.

    \b
    spectrakan compare runs/droplet2d-*
    """
    records = {str(path): _record(path) for path in runs}
    tasks = {record["task"] for record in records.values()}
    if len(tasks) > 1:
        raise ConfigError(f"runs of different tasks cannot be compared: {', '.join(sorted(tasks))}")
    ordered = dict(sorted(records.items(), key=lambda item: _first_score(item[1])))
    if as_json:
        print(json.dumps(ordered, indent=2))
        return
    print_comparison(ordered)


def print_comparison(records: dict[str, dict[str, Any]]) -> None:
    """A table of records: one row a run, one column a metric; the smallest error of a column in bold."""
    table = Table("run", "model", "parameters", "seconds", *COLUMNS, box=None, pad_edge=False)
    smallest = {name: min(_number(record, name) for record in records.values()) for name in COLUMNS}
    for name, record in records.items():
        cells = [_cell(_number(record, column), smallest[column]) for column in COLUMNS]
        table.add_row(name, record["model"], str(record["parameters"]), f"{record['train_seconds']:.0f}", *cells)
    Console(highlight=False, width=None if sys.stdout.isatty() else 200).print(table)
    hashes = {record["provenance"]["data_sha256"] for record in records.values()}
    if len(hashes) > 1:
        print("These runs saw different data, so their scores are not of the same test samples.")


def _record(path: Path) -> dict[str, Any]:
    folder = RunFolder(path)
    if not folder.finished:
        state = (
            "is not finished; go on with `spectrakan train --resume`" if folder.started else "is not a run's folder"
        )
        raise ConfigError(f"'{path}' {state}")
    return read_record(folder.record)


def _number(record: dict[str, Any], metric: str) -> float:
    value = record["metrics"].get(metric)
    return float("inf") if value is None else float(value)


def _first_score(record: dict[str, Any]) -> float:
    return _number(record, COLUMNS[0])


def _cell(value: float, smallest: float) -> str:
    if value == float("inf"):
        return "-"
    return f"[bold]{value:.4g}[/bold]" if value == smallest else f"{value:.4g}"
