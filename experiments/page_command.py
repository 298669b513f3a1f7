"""`python -m experiments.page_command`: the records of a campaign as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.archive import Archive
from experiments.scales import SCALES
from experiments.web_page import web_page
from spectrakan.errors import ConfigError, nearest
from spectrakan.storage import write_text_atomically

PREFERRED = (*reversed(SCALES), "small")
"""The scale that is shown where none is named: the first that has records. `small` is an earlier campaign's."""


def report(
    results: Annotated[Path, typer.Argument(help="Folder of the records.")] = Path("results"),
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path("report.html"),
    scale: Annotated[
        str | None, typer.Option(help=f"{', '.join(PREFERRED)}.", show_default="the first with records")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder of data and weights.", show_default="RESULTS/.cache")
    ] = None,
) -> None:
    """Write tables, figures and their provenance as one page that needs no network and nothing beside it.

    Works with part of the records and says which are missing. Figures of fields are those that
    `python -m experiments figures` has drawn.

    \b
    python -m experiments.page_command                                   results/ -> report.html
    python -m experiments.page_command results -o small.html --scale small
    """
    folder, chosen = _found(results, scale)
    archive = Archive(folder, cache or folder / ".cache", chosen)
    text = web_page(archive)
    write_text_atomically(output, text)
    print(f"{output}: {len(text) / 1e6:.1f} MB, records of {archive.folder}")


def _found(results: Path, scale: str | None) -> tuple[Path, str]:
    """The folder and scale of the records; the folder of one scale may be named itself."""
    if scale is None and results.name in PREFERRED and not any((results / name).is_dir() for name in PREFERRED):
        results, scale = results.parent, results.name
    if scale is not None and scale not in PREFERRED:
        raise ConfigError(f"unknown scale '{scale}'{nearest(scale, PREFERRED)}; known: {', '.join(PREFERRED)}")
    there = [name for name in PREFERRED if any((results / name).glob("*/*.json"))]
    if scale is None and there:
        return results, there[0]
    if scale is None or scale not in there:
        where = f"'{results / scale}'" if scale else f"'{results}'"
        raise ConfigError(
            f"{where} holds no records; run `python -m experiments`, or name the folder that holds "
            f"{', '.join(PREFERRED)}"
        )
    return results, scale


if __name__ == "__main__":
    from spectrakan.cli.app import run_command

    run_command(report)
