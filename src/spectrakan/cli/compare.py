"""`spectrakan compare`: several runs and evaluations in one table."""

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from spectrakan.errors import ConfigError


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, records, or evaluations (JSON).")],
    export: Annotated[Path | None, typer.Option(help="Markdown file to write the table to.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Put the scores of runs and evaluations side by side.

    Rows are sorted by error. The best of a column is bold, the second best underlined. For the paper's own tasks its
    value is in brackets.

    \b
    spectrakan compare runs/droplet2d-*
    spectrakan compare runs/mine-fno-0/evaluations/new.json runs/mine-spectrakan-0/evaluations/new.json
    spectrakan compare runs/darcy2d-* --export darcy.md
    """
    from spectrakan.report import scores_table, to_markdown
    from spectrakan.storage import write_text_atomically

    records = {str(path): read_scores(path) for path in runs}
    problems = {record["task"] for record in records.values()}
    if len(problems) > 1:
        raise ConfigError(f"runs of different problems cannot be compared: {', '.join(sorted(problems))}")
    errors = {name: record["metrics"].get("relative_l2") for name, record in records.items()}
    ranked = sorted(records, key=lambda name: math.inf if errors[name] is None else errors[name])
    ordered = {name: records[name] for name in ranked}
    if export is not None:
        write_text_atomically(export, to_markdown(scores_table("scores", ordered)))
    if as_json:
        print(json.dumps(ordered, indent=2))
        return
    print_comparison(ordered)


def print_comparison(records: dict[str, dict[str, Any]]) -> None:
    """A table of records: one row a run, one column a metric."""
    from spectrakan.cli.terminal import print_marked
    from spectrakan.report import scores_table, to_rich

    table = scores_table("scores", records)
    print_marked(to_rich(table))
    for note in table.notes:
        print(note)


def read_scores(path: Path) -> dict[str, Any]:
    """The record of a run folder, a record, or an evaluation that `spectrakan evaluate` wrote."""
    from spectrakan.runs import SCORED_KEYS, RunFolder, read_record

    if path.is_file():
        return read_record(path, SCORED_KEYS)
    folder = RunFolder(path)
    folder.require_finished()
    return read_record(folder.record)
