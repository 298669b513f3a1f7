"""`spectrakan serve`: a page in the browser where a trained operator can be touched, and an HTTP API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectrakan.errors import require_package

if TYPE_CHECKING:
    from spectrakan.data.prepare import Prepared
    from spectrakan.serve.shown import GivenRun


def serve(
    runs: Annotated[list[Path] | None, typer.Argument(help="Folders of finished runs to look into.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="File of samples for all runs.", show_default="each run's test samples")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to bind to; others than this let other machines in.")
    ] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Open a page where a trained operator runs beside its solver.

    Touch a pool, paint rock, draw a flow, with the models that ship with the package; look into runs: samples,
    errors, KAN curves, gates, attention, certificates. The API is described at /api/openapi.json.

    \b
    spectrakan serve
    spectrakan serve runs/droplet2d-spectrakan-0 runs/droplet2d-fno-0
    spectrakan serve RUN --data mine.h5 --port 8080 --no-browser
    """
    import webbrowser

    for name in ("starlette", "uvicorn"):
        require_package(name, "serve", "the page")
    from spectrakan.processor import keep_freed_memory
    from spectrakan.serve.app import serve as answer

    keep_freed_memory()
    solved: dict[str, Prepared] = {}
    given = [given_run(path, data, solved) for path in runs or ()]

    def started(address: str) -> None:
        print(f"open {address} (stop with Ctrl-C)", flush=True)
        if not no_browser:
            webbrowser.open(address)

    answer(given, host, port, started)


def given_run(path: Path, data: Path | None, solved: dict[str, Prepared]) -> GivenRun:
    """A finished run with its samples, its record and, where there is one, its certificate."""
    from spectrakan.cli.subject import load_subject
    from spectrakan.runs import RunFolder, read_record
    from spectrakan.serve.shown import GivenRun
    from spectrakan.storage import read_json

    folder = RunFolder(path)
    folder.require_finished()
    subject = load_subject(folder, data, solved=solved)
    found = path / "certificate.json"
    return GivenRun(
        name=path.resolve().name,
        task=subject.config.task,
        model=subject.model.eval(),
        trajectories=subject.trajectories,
        samples=list(subject.samples),
        record=read_record(folder.record),
        certificate=read_json(found) if found.is_file() else None,
        warning=subject.warning,
    )
