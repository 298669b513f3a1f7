"""`spectrakan download`: published files, by name."""

from pathlib import Path
from typing import Annotated

import typer


def download(
    name: Annotated[
        str, typer.Argument(help="Name of a PDEBench file; without it, all are listed.", show_default=False)
    ] = "",
    folder: Annotated[Path, typer.Option("--folder", "-d", help="Where to put it.")] = Path("data"),
    address: Annotated[
        str | None, typer.Option(help="Server, up to the file's number.", show_default="PDEBench's")
    ] = None,
) -> None:
    """Download a PDEBench file.

    An interrupted download continues when the command is given again.

    \b
    spectrakan download                                   which files there are
    spectrakan download 2D_DarcyFlow_beta1.0_Train.hdf5   one of them, to data/
    spectrakan download 2D_rdb_NA_NA.h5 -d /scratch       elsewhere

    Free space is looked at first, and the MD5 at the end: a damaged file is removed.
    """
    from spectrakan.data import download as library
    from spectrakan.training.display import progress_bar

    if not name:
        for entry in library.PDEBENCH.values():
            print(f"{entry.name:52} {entry.gigabytes:5.1f} GB  {entry.task}")
        return
    with progress_bar(f"{name}, MB") as show:
        path = library.download(
            name,
            folder,
            progress=lambda done, total: show(done // 10**6, total // 10**6),
            address=address or library.SERVER,
        )
    print(f"{path}: complete, MD5 as published")
