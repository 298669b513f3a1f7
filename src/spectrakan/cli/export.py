"""`spectrakan export`: the best weights of a run as one file that runs without this library."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or of a saved model.")],
    kind: Annotated[str, typer.Option("--format", help="torch-export, onnx or aotinductor.")] = "torch-export",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write.", show_default="the run's name")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a trained model as one file that runs without spectrakan.

    Physical numbers go in and come out. The file takes any batch and any number of equal cells, unless the run's
    cells are unequal: then it takes its grid alone. It is compared with the model at two sizes before it is kept.

    \b
    spectrakan export runs/darcy2d-spectrakan-0 --format onnx -o darcy.onnx
    spectrakan export RUN                                           a program of torch.export, .pt2
    spectrakan export RUN --format aotinductor                      compiled for this machine, .pt2
    """
    from spectrakan.data.prepare import find
    from spectrakan.errors import ConfigError, nearest
    from spectrakan.export import ENDINGS, export_model
    from spectrakan.models import from_pretrained
    from spectrakan.runs import RunFolder
    from spectrakan.training import resolve

    if kind not in ENDINGS:  # before the model is read
        raise ConfigError(f"unknown format '{kind}'{nearest(kind, ENDINGS)}")
    path = output or Path(f"{run.resolve().name}{ENDINGS[kind]}")
    folder, grid = RunFolder(run), None
    if folder.started:
        resolved = resolve(folder.read_config())
        # Grids of solvers have equal cells, those of data need not.
        if resolved.config.data.path is not None or resolved.problem.equation is None:
            grid = find(resolved.problem, resolved.config.data).grid
    made = export_model(from_pretrained(run), path, kind, grid=grid, force=force)
    cells = "any number of equal cells" if made.cells is None else f"{' x '.join(map(str, made.cells))} cells"
    worst = max(made.errors.values())
    print(f"{path}: {kind}, {path.stat().st_size / 1e6:.1f} MB, any batch, {cells}")
    print(f"largest difference from the model at {' and '.join(made.errors)}: {worst:.1e} of the largest value")
