"""`spectrakan report`: one page about any runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spectrakan.report.runs_page import RunReport


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, or records.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path("report.html"),
) -> None:
    """Write one page about any runs: scores, curves, settings.

    The page is HTML and also has errors in time and provenance. Runs of one problem share a table and figures.
    Results of `spectrakan evaluate` beside a run are shown too. The page needs no network and no other file.

    \b
    spectrakan report runs/heat-*
    spectrakan report runs/heat-fno-0 runs/darcy2d-spectrakan-0 -o page.html
    """
    from spectrakan.report.runs_page import runs_page
    from spectrakan.storage import write_text_atomically

    paths = {path.resolve(): path for path in runs}
    command = f"spectrakan report {' '.join(map(str, runs))}"
    text = runs_page([read_run(path, str(path)) for path in paths.values()], command)
    write_text_atomically(output, text)
    print(f"{output}: {len(paths)} runs, {len(text) / 1e6:.1f} MB")


def read_run(path: Path, name: str) -> RunReport:
    """A run from its folder, with its log and evaluations, or from its record alone."""
    from spectrakan.report.runs_page import RunReport
    from spectrakan.runs import SCORED_KEYS, RunFolder, read_log, read_record

    if path.is_file():
        return RunReport(name, read_record(path))
    folder = RunFolder(path)
    folder.require_finished()
    found = {file.stem: read_record(file, SCORED_KEYS) for file in sorted((path / "evaluations").glob("*.json"))}
    return RunReport(name, read_record(folder.record), read_log(folder.log), found)
