"""`spectrakan demo`: two models learn a falling droplet and are compared on new droplets."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spectrakan.fields import Trajectories
    from spectrakan.training import Run

PROBLEM = "droplet2d"
MODELS: dict[str, tuple[str, ...]] = {
    "spectrakan": (
        "model.width=16", "model.num_layers=3", "model.coarse_num_layers=2",
        "model.num_modes=8", "model.coarse_num_modes=6",
    ),
    "fno": ("model.width=16", "model.num_modes=8"),
}  # fmt: skip
"""Small enough for a laptop without a GPU; FNO has twice as many weights."""
TRAINING = (
    "training.mode=one_step",
    "training.horizon=1",
    "training.curriculum=0.0",
    "training.batch_size=8",
    "training.learning_rate=6e-3",
    # Products this small gain nothing from a second thread, and lose much where the cores are shared.
    "runtime.threads=1",
)
LEAD = (
    "Each model has learned to predict the next frame of depth and velocity from one frame. Here it starts from the "
    "first frame of {count} droplets that were not in its data, and its own predictions are its next inputs."
)
CAPTION = (
    "{field} at t = {last:g}, predicted from t = {first:g}: the truth, then each model's prediction above its error. "
    "Truth and predictions share one colour scale, errors another."
)
FRAMES = 33
"""The input and the frames that the problem scores."""
NEXT = (
    "Next:\n"
    "  spectrakan train --data mine.h5 --model spectrakan    learn from your own data\n"
    "  spectrakan report runs/*                              one page about your runs\n"
    "  spectrakan serve                                      touch the water: trained operators in your browser"
)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path("demo.html"),
    samples: Annotated[int, typer.Option(help="Droplets to solve for.")] = 60,
    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 5,
) -> None:
    """Train SpectraKAN and FNO on falling droplets and write a page.

    The page compares both models: scores, fields and errors against time.
    """
    import numpy as np

    from spectrakan.cli.compare import print_comparison
    from spectrakan.data.files import write_dataset
    from spectrakan.data.generate import generate
    from spectrakan.storage import write_text_atomically
    from spectrakan.training import train
    from spectrakan.training.display import progress_bar
    from spectrakan.training.runtime import started
    from spectrakan.training.settings import RuntimeSettings

    runs = {}
    with tempfile.TemporaryDirectory() as folder, started(RuntimeSettings(threads=1)):
        data = Path(folder) / "droplets.h5"
        with progress_bar(f"solving {PROBLEM}") as progress:
            write_dataset(data, generate(PROBLEM, samples, frames=FRAMES, dtype=np.float32, progress=progress))
        unseen = generate(PROBLEM, 4, seed=1, frames=FRAMES, dtype=np.float32)
        for name, settings in MODELS.items():
            print(f"training {name}")
            overrides = [*TRAINING, f"training.epochs={epochs}", *settings]
            runs[name] = train(PROBLEM, name, overrides, data=data, progress=True)
        print_comparison({name: run.record for name, run in runs.items()})
        write_text_atomically(output, demo_page(runs, unseen))
    print(f"\nThe page with pictures is {output.resolve()}\n{NEXT}")


def demo_page(runs: dict[str, Run], unseen: Trajectories) -> str:
    """Scores, fields at the last time, and errors against time, on droplets that no run has seen."""
    import numpy as np

    from spectrakan.evaluation import evaluate
    from spectrakan.evaluation.batches import all_predicted
    from spectrakan.report import Paragraph, Picture, Section, page, scores_table
    from spectrakan.report.figures import error_against_time, field_maps, figure_bytes

    ahead = len(unseen.times) - 1
    scores = {name: evaluate(run.model, unseen, horizon=ahead) for name, run in runs.items()}
    table = scores_table(
        "droplets that were not in the data", {n: {**run.record, **scores[n]} for n, run in runs.items()}
    )
    times = next(iter(scores.values()))["times"]
    curves = {name: each["metrics_per_frame"]["relative_l2"] for name, each in scores.items()}
    growth = figure_bytes(error_against_time(times, curves, "relative L2"))
    caption = CAPTION.format(field=unseen.fields[0].name, first=unseen.times[0], last=unseen.times[-1])
    errors = ", ".join(f"{name} {each['metrics']['relative_l2']:.3g}" for name, each in scores.items())
    first = {
        name: all_predicted(run.model, unseen, [0], ahead)[0].numpy()[0, -1, ..., 0] for name, run in runs.items()
    }
    drawn = field_maps(unseen.fields[0], unseen.grid, np.asarray(unseen.values[0])[-1, ..., 0], first)
    pictures = [
        Picture(figure_bytes(drawn), caption, f"{caption} Relative L2 errors: {errors}."),
        Picture(growth, "Error against time", "One curve a model: relative L2 error of the rollout at each time."),
    ]
    return page(
        "A droplet falls",
        [Paragraph(LEAD.format(count=unseen.num_samples))],
        [Section("Scores", [table]), Section("Pictures", pictures)],
    )
