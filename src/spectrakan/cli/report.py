"""`spectrakan report`: the results as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectrakan.errors import ConfigError
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.scales import SCALES, scale_named
from spectrakan.experiments.web_page import web_page
from spectrakan.storage import write_text_atomically

PREFERRED = ("paper", "small", "smoke")
"""The scale that is shown where none is named: the largest that has records."""


def report(
    results: Annotated[Path, typer.Argument(help="Folder of the records.")] = Path("results"),
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path("report.html"),
    scale: Annotated[
        str | None, typer.Option(help="smoke, small or paper.", show_default="the largest there")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder of data and weights.", show_default="RESULTS/.cache")
    ] = None,
) -> None:
    """Write tables, figures and their provenance as one page that needs no network and nothing beside it.

    Works with part of the records and says which are missing. Figures of fields are those that
    `spectrakan reproduce figures` has drawn.

    \b
    spectrakan report                                   results/ -> report.html
    spectrakan report results -o small.html --scale small
    """
    folder, chosen = _found(results, scale)
    archive = Archive(folder, cache or folder / ".cache", chosen)
    text = web_page(archive)
    write_text_atomically(output, text)
    print(f"{output}: {len(text) / 1e6:.1f} MB, records of {archive.folder}")


def _found(results: Path, scale: str | None) -> tuple[Path, str]:
    """The folder and scale of the records; the folder of one scale may be named itself."""
    if scale is None and results.name in SCALES and not any((results / name).is_dir() for name in SCALES):
        results, scale = results.parent, results.name
    if scale is not None:
        scale_named(scale)
    there = [name for name in PREFERRED if any((results / name).glob("*/*.json"))]
    if scale is None and there:
        return results, there[0]
    if scale is None or scale not in there:
        where = f"'{results / scale}'" if scale else f"'{results}'"
        raise ConfigError(
            f"{where} holds no records; run `spectrakan reproduce`, or name the folder that holds "
            f"{', '.join(PREFERRED)}"
        )
    return results, scale
