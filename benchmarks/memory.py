"""`python -m benchmarks.memory MODEL CELLS BATCH FRAMES`: megabytes that one training step needs at its peak."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import torch

from benchmarks.operators import inputs, models, training_step


def peak() -> float:
    """Most memory this program ever held, in megabytes; the system's own peak begins with the parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def main() -> None:
    """Measure one step after a tiny one has loaded what every step needs."""
    name, (cells, batch, frames) = sys.argv[1], map(int, sys.argv[2:5])
    torch.set_num_threads(1)
    model = models()[name]
    training_step(model, inputs(model, 32, 1))()
    field = inputs(model, cells, batch)
    before = peak()
    training_step(model, field, frames)()
    print(round(peak() - before, 1))


if __name__ == "__main__":
    main()
