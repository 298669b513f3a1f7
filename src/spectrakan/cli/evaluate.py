"""`spectrakan evaluate`: scores of a trained model, on its own test samples or on a file."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    data: Annotated[Path | None, typer.Option(help="File of samples.", show_default="the run's test samples")] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="YAML file that says what the arrays of a foreign file mean.")
    ] = None,
    resolution: Annotated[
        list[int] | None,
        typer.Option(help="Cells along the longest axis; may be given several times.", show_default="as trained"),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Frames to predict.", show_default="the problem's")
    ] = None,
    stability: Annotated[
        bool, typer.Option("--stability", help="Roll out to five horizons; report blow-ups.")
    ] = False,
    bands: Annotated[bool, typer.Option("--bands", help="Error bands from the calibration part.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Run a model also on grids where its weights are another operator.")
    ] = False,
    space_parallel: Annotated[int, typer.Option(min=1, help="Processes among which each field is cut.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Score the best weights of a run.

    Rollouts start from the first window of each sample; every metric is given. The result is also
    written to RUN/evaluations/, with its provenance.

    \b
    spectrakan evaluate runs/droplet2d-fno-0                      on the run's own test samples
    spectrakan evaluate RUN --resolution 32 --resolution 64       the same samples, solved on each grid
    spectrakan evaluate RUN --data new.h5 --horizon 50
    spectrakan evaluate RUN --stability --bands                   all questions
    torchrun --nproc-per-node 8 -m spectrakan evaluate RUN        the samples shared out among processes
    torchrun --nproc-per-node 8 -m spectrakan evaluate RUN --space-parallel 4    each field cut into four
    """
    from spectrakan.cli.questions import Asked, answer

    questions = {"stability": stability, "bands": bands}
    names = tuple(name for name, wanted in questions.items() if wanted)
    asked = Asked(names, tuple(resolution or ()), horizon, force, space_parallel)
    answer(run, data, mapping, asked, device=device, as_json=as_json)
