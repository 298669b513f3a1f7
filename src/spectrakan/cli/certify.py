"""`spectrakan certify`: how much a trained model can change under a perturbation, proved where it can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectrakan.errors import RunError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectrakan.theory import Certificate


def certify(
    run: Annotated[Path, typer.Argument(help="Folder of a run of a spectrakan model.")],
    radius: Annotated[float, typer.Option(help="Largest perturbation of any cell, in normalised units.")] = 0.1,
    points: Annotated[int, typer.Option(min=1, help="Radii in the picture, each a tenth of the one before.")] = 2,
    samples: Annotated[int, typer.Option(min=1, help="Inputs to certify around.")] = 2,
    data: Annotated[Path | None, typer.Option(help="File of samples.", show_default="the run's test samples")] = None,
    resolution: Annotated[int | None, typer.Option(help="Cells per axis.", show_default="as trained")] = None,
    starts: Annotated[int, typer.Option(min=1, help="Starts of gradient ascent against each bound.")] = 16,
    pairs: Annotated[int, typer.Option(min=0, help="Random pairs of inputs against each bound.")] = 64,
) -> None:
    """Bound how far a trained model can change under a perturbation.

    Bounds token, modulation and prediction, and tries to break the bounds.

    Writes certificate.json into the run's folder, and certificate.png: bound and worst change found against the
    radius. Fails if an attack beats a bound.

    \b
    spectrakan certify runs/cns1d-spectrakan-0                       around two test inputs
    spectrakan certify runs/darcy2d-spectrakan-0 --resolution 16     large fields: on a coarser grid
    spectrakan certify runs/cns1d-spectrakan-0 --radius 0.01 --samples 8
    """
    from spectrakan.cli.subject import load_subject
    from spectrakan.report.figures import save_figure
    from spectrakan.runs import RunFolder
    from spectrakan.storage import write_text_atomically
    from spectrakan.theory import AttackSettings, certify_radii
    from spectrakan.training.display import progress_bar

    folder = RunFolder(run)
    subject = load_subject(folder, data, resolution=resolution)
    first = subject.first_window(samples)
    config = AttackSettings(starts=starts, pairs=pairs)
    radii = [radius / 10**power for power in range(points)]
    with progress_bar("bounding, in %") as progress:
        every = certify_radii(
            subject.model, first.inputs, radii, params=first.params, grid=first.grid, config=config, progress=progress
        )
    found = every[0]
    control = subject.config.training.lipschitz
    if control.cap is not None:
        found = found.capped(control.cap, control.measure)
    write_text_atomically(folder.path / "certificate.json", found.to_json() + "\n")
    save_figure(picture(every), folder.path / "certificate.png")
    print_certificate(found)
    for smaller in every[1:]:
        print(f"{smaller.sentence}.")
    print(f"written to {folder.path / 'certificate.json'}, drawn in {folder.path / 'certificate.png'}")
    beaten = dict.fromkeys(name for each in (found, *every[1:]) for name in each.beaten)
    if beaten:
        raise RunError(
            f"refuted: {', '.join(beaten)}; expected every bound to lie above what attacks reach; "
            "keep the run's folder and report it"
        )


def picture(certificates: Sequence[Certificate]) -> Figure:
    """Bound and worst change found of the prediction against the radius; without a proof there is no bound."""
    from spectrakan.report.figures import bound_against_radius

    entries = [each.entries["prediction_change"] for each in certificates]
    radii = [each.radius for each in certificates]
    proved = [entry.value if entry.status == "certified" else math.inf for entry in entries]
    bounds = [radius * value for radius, value in zip(radii, proved, strict=True)]
    attacked = [radius * (entry.attacked or 0.0) for radius, entry in zip(radii, entries, strict=True)]
    return bound_against_radius(radii, bounds, attacked)


def print_certificate(found: Certificate) -> None:
    """Each entry: its bound, the worst that attacks reached, their ratio and whether the bound is proved."""
    from spectrakan.cli.terminal import print_table

    cells = " x ".join(map(str, found.resolution))
    print(f"{found.num_inputs} inputs of {cells} cells, sup-norm balls of radius {found.radius:g} (normalised)")
    rows: list[list[str | float | None]] = []
    for name, entry in found.entries.items():
        bound = f"{entry.value:.4g}" if math.isfinite(entry.value) else "no finite bound"
        if name == "modulation_paper" and found.log_modulation_paper is not None and math.isinf(entry.value):
            bound = f"exp({found.log_modulation_paper:.1f})"
        rows.append([name, bound, entry.attacked, entry.ratio, entry.status])
    print_table(["quantity", "bound", "attacked", "ratio", "status"], rows)
    for note in (*found.notes, f"{found.sentence}."):
        print(note)
