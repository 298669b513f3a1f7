"""`spectrakan report`: one page about any runs."""

from pathlib import Path
from typing import Annotated

import typer


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
    from spectrakan.report import RunReport, runs_page
    from spectrakan.runs import SCORED_KEYS, RunFolder, read_log, read_record
    from spectrakan.storage import write_text_atomically

    reports = []
    for path in {path.resolve(): path for path in runs}.values():
        if path.is_file():
            reports.append(RunReport(str(path), read_record(path)))
            continue
        folder = RunFolder(path)
        folder.require_finished()
        found = {file.stem: read_record(file, SCORED_KEYS) for file in sorted((path / "evaluations").glob("*.json"))}
        reports.append(RunReport(str(path), read_record(folder.record), read_log(folder.log), found))
    text = runs_page(reports, f"spectrakan report {' '.join(map(str, runs))}")
    write_text_atomically(output, text)
    print(f"{output}: {len(reports)} runs, {len(text) / 1e6:.1f} MB")
