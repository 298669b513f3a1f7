"""How fast the one-dimensional solvers make samples of their tasks, drawing included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from spectrakan.pde.catalog import EQUATIONS

LIMITS = {"cns1d": 300.0, "diffusion_reaction1d": 20.0}
"""Seconds that 1,000 samples with the task's defaults may take on two cores."""


def make_samples(name: str, num_samples: int) -> None:
    """Draw and solve `num_samples` samples of a task with its defaults."""
    equation = EQUATIONS[name]
    parameters = equation.parameters()
    generator = torch.Generator().manual_seed(0)
    initial = equation.sample(num_samples, equation.resolution, parameters, generator)
    equation.solve(initial, equation.times, parameters)


def cases() -> dict[str, Callable[[int], None]]:
    """Each solver by its name, as a function that makes a number of samples."""
    return {name: partial(make_samples, name) for name in LIMITS}
