"""`python -m benchmarks.memory MODEL CELLS BATCH`: megabytes that one training step needs at its peak."""

from __future__ import annotations

import resource
import sys

import torch

from benchmarks.operators import inputs, models, training_step


def peak() -> float:
    """Most memory this process ever held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure one step after a tiny one has loaded what every step needs."""
    name, cells, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    model = models()[name]
    training_step(model, inputs(model, 32, 1))()
    field = inputs(model, cells, batch)
    before = peak()
    training_step(model, field)()
    print(round(peak() - before, 1))


if __name__ == "__main__":
    main()
