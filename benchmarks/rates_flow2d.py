"""How quickly the two-dimensional flows are generated."""

from __future__ import annotations

from collections.abc import Callable

import torch

from spectrakan.pde import darcy2d, droplet2d, shallow_water2d
from spectrakan.pde.equation import Equation

AT_ONCE = 64
"""Samples solved before they are put away in single precision, for a thousand films do not fit in memory."""


def cases() -> dict[str, Callable[[int], None]]:
    """Name of a rate -> function that generates that many samples of the task as it is by default."""
    equations = (darcy2d.EQUATION, shallow_water2d.EQUATION, droplet2d.EQUATION)
    return {_name(equation): _generate(equation) for equation in equations}


def _name(equation: Equation) -> str:
    return f"{equation.name} {'x'.join(map(str, equation.resolution))}, {len(equation.times)} frames"


def _generate(equation: Equation) -> Callable[[int], None]:
    def run(num_samples: int) -> None:
        generator = torch.Generator().manual_seed(0)
        parameters = equation.parameters()
        for first in range(0, num_samples, AT_ONCE):
            count = min(AT_ONCE, num_samples - first)
            inputs = equation.sample(count, equation.resolution, parameters, generator)
            equation.solve(inputs, equation.times, parameters).float()

    return run
