"""What the training loop costs beside forward, backward and optimizer, on the demo's size."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from spectrakan.cli.demo import MODELS, PROBLEM, TRAINING
from spectrakan.training import Event, StepTaken, train

LIMIT = 0.05


def overhead() -> list[dict[str, Any]]:
    """Medians over the steps of one epoch, with log and checkpoints written as in any run."""
    found = []
    for name, shape in MODELS.items():
        steps: list[StepTaken] = []

        def keep(event: Event, steps: list[StepTaken] = steps) -> None:
            if isinstance(event, StepTaken):
                steps.append(event)

        small = ["data.num_samples=10", "data.test_samples=1", "training.epochs=1"]
        with tempfile.TemporaryDirectory() as place:
            train(PROBLEM, name, [*TRAINING, *shape, *small], Path(place) / "run", listeners=[keep])
        # The first steps fill caches.
        kept = steps[5:]
        seconds = statistics.median(step.seconds for step in kept)
        share = statistics.median(1 - step.compute_seconds / step.seconds for step in kept)
        found.append({"model": name, "seconds": seconds, "share": share, "limit": LIMIT})
    return found


def rows(record: list[dict[str, Any]]) -> list[list[str]]:
    """The measurement as rows of a table."""
    return [
        [entry["model"], f"{1000 * entry['seconds']:.1f}", f"{entry['share']:.1%}", f"{entry['limit']:.0%}"]
        for entry in record
    ]
