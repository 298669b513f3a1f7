"""How fast the two-dimensional solvers make samples of their tasks, drawing included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from spectrakan.pde.catalog import EQUATIONS

LIMITS = {"darcy2d": 45.0, "droplet2d": 45.0, "shallow_water2d": 150.0}
"""Seconds that 1,000 samples with the task's defaults may take on two cores."""

AT_ONCE = 64
"""Samples solved before they are put away in single precision, for a thousand films do not fit in memory."""


def make_samples(name: str, num_samples: int) -> None:
    """Draw and solve `num_samples` samples of a task with its defaults."""
    equation = EQUATIONS[name]
    parameters = equation.parameters()
    generator = torch.Generator().manual_seed(0)
    for first in range(0, num_samples, AT_ONCE):
        count = min(AT_ONCE, num_samples - first)
        inputs = equation.sample(count, equation.resolution, parameters, generator)
        equation.solve(inputs, equation.times, parameters).float()


def cases() -> dict[str, Callable[[int], None]]:
    """Each solver by its name, as a function that makes a number of samples."""
    return {name: partial(make_samples, name) for name in LIMITS}
