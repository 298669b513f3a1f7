"""`spectrakan demo`: two models learn a falling droplet, and are compared on droplets they have not seen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from spectrakan.cli.compare import print_comparison
from spectrakan.cli.display import training_display
from spectrakan.cli.progress import progress_bar
from spectrakan.data.generate import generate
from spectrakan.data.write import write_dataset
from spectrakan.evaluation import evaluate
from spectrakan.evaluation.batches import predict_frames
from spectrakan.fields import Trajectories
from spectrakan.report import DataTable, Entry, Paragraph, Picture, Section, page
from spectrakan.report.figures import error_against_time, figure_bytes
from spectrakan.report.figures.side_by_side import fields_side_by_side
from spectrakan.storage import write_text_atomically
from spectrakan.training import Run, train

TASK = "droplet2d"
MODELS: dict[str, tuple[str, ...]] = {
    "spectrakan": (
        "model.width=16",
        "model.num_layers=3",
        "model.coarse_num_layers=2",
        "model.num_modes=8",
        "model.coarse_num_modes=6",
        "model.mixing=joint",
        "model.coarse_mixing=joint",
    ),
    "fno": ("model.width=16", "model.num_modes=8"),
}
"""Of about the same number of weights, and small enough for a laptop without a GPU."""
SETTINGS = (
    "training.mode=one_step",
    "training.horizon=1",
    "training.curriculum=0.0",
    "training.learning_rate=4e-3",
    # Products this small gain nothing from a second thread, and lose much where the cores are shared.
    "runtime.threads=1",
)
STORY = (
    "Each model saw one frame of depth and velocity and learned to give the next. Here it starts from the first "
    "frame of {count} droplets it has never seen and is fed its own answers."
)
COLUMNS = ("model", "parameters", "seconds", "relative L2", "RMSE", "largest error")
FRAMES = 33
"""The input and the frames that the task scores."""


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path("demo.html"),
    samples: Annotated[int, typer.Option(help="Droplets to solve for.")] = 60,
    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 10,
) -> None:
    """Train SpectraKAN and FNO on falling droplets, compare them, and write a page with pictures."""
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "droplets.h5"
        with progress_bar(f"solving {TASK}") as progress:
            write_dataset(data, generate(TASK, samples, frames=FRAMES, dtype=np.float32, progress=progress))
        unseen = generate(TASK, 4, seed=1, frames=FRAMES, dtype=np.float32)
        runs = {name: _trained(name, data, epochs) for name in MODELS}
    print_comparison({name: run.record for name, run in runs.items()})
    write_text_atomically(output, demo_page(runs, unseen))
    print(f"{output}: pictures of input, truth, predictions and errors")


def _trained(name: str, data: Path, epochs: int) -> Run:
    print(f"training {name}")
    choices = [*SETTINGS, f"training.epochs={epochs}", *MODELS[name], f"data.path='{data}'"]
    with training_display() as display:
        return train(TASK, model=name, overrides=choices, listeners=[display])


def demo_page(runs: dict[str, Run], unseen: Trajectories) -> str:
    """Scores, fields at the last scored time, and errors against time, on droplets that no run has seen."""
    ahead = len(unseen.times) - 1
    scores = {name: evaluate(run.model, unseen, horizon=ahead) for name, run in runs.items()}
    rows = [_row(name, run, scores[name]["metrics"]) for name, run in runs.items()]
    first = next(iter(scores.values()))
    curves = {name: each["metrics_per_frame"]["relative_l2"] for name, each in scores.items()}
    growth = figure_bytes(error_against_time(first["times"], curves, "relative L2"))
    pictures = [
        Picture(growth, "Error against time", "One curve a model: relative L2 error of the rollout at each time."),
        *(_fields(name, run, unseen) for name, run in runs.items()),
    ]
    return page(
        "A droplet falls",
        [Paragraph(STORY.format(count=unseen.num_samples))],
        [Section("Scores", [DataTable(COLUMNS, rows)]), Section("Pictures", pictures)],
    )


def _row(name: str, run: Run, metrics: dict[str, Any]) -> list[Entry]:
    parameters, seconds = run.record["parameters"], run.record["train_seconds"]
    numbers = [Entry(f"{metrics[key]:.4f}", metrics[key]) for key in ("relative_l2", "rmse", "max_error")]
    return [Entry(name), Entry(f"{parameters:,}", parameters), Entry(f"{seconds:.0f}", seconds), *numbers]


def _fields(name: str, run: Run, unseen: Trajectories) -> Picture:
    ahead = len(unseen.times) - 1
    truth = np.asarray(unseen.values[:1], dtype=np.float32)
    answer = predict_frames(run.model, torch.from_numpy(truth[:, :1]), ahead, None, unseen.grid).numpy()
    now, true, said = truth[0, 0, ..., 0], truth[0, -1, ..., 0], answer[0, -1, ..., 0]
    drawn = fields_side_by_side(
        {"input": now, "truth": true, "prediction": said, "error": said - true},
        error_columns=("error",),
        own_scale=("input",),
    )
    field = unseen.fields[0].name
    caption = f"{name}: {field} at t = {unseen.times[0]:g} and at t = {unseen.times[-1]:g}"
    return Picture(figure_bytes(drawn), caption, f"Four maps: input, truth, prediction and error. {caption}")
