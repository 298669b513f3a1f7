"""`spectrakan download`: published files, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectrakan.cli.progress import progress_bar
from spectrakan.data import download as library
from spectrakan.data.published import PDEBENCH, SERVER


def download(
    name: Annotated[
        str, typer.Argument(help="Name of a PDEBench file; without it, all are listed.", show_default=False)
    ] = "",
    folder: Annotated[Path, typer.Option("--folder", "-d", help="Where to put it.")] = Path("data"),
    address: Annotated[str, typer.Option(help="Server, up to the file's number.")] = SERVER,
) -> None:
    """Download a PDEBench file; an interrupted download goes on when the command is given again.

    \b
    spectrakan download                                   which files there are
    spectrakan download 2D_DarcyFlow_beta1.0_Train.hdf5   one of them, to data/
    spectrakan download 2D_rdb_NA_NA.h5 -d /scratch       elsewhere

    Free space is looked at first, and the MD5 at the end: a damaged file is removed.
    """
    if not name:
        for entry in PDEBENCH.values():
            print(f"{entry.name:52} {entry.gigabytes:5.1f} GB  {entry.task}")
        return
    with progress_bar(name, in_bytes=True) as progress:
        path = library.download(name, folder, progress=progress, server=library.Server(address=address))
    print(f"{path}: complete, MD5 as published")
