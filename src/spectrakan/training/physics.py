"""The equation itself as a part of the loss: how far predicted frames are from solving it.

The residual of the task's equation is taken in physical units over the size of the equation's own terms (or of
the change in a frame, or of the source), so it is a pure number: 0 where the equation is solved, about 1 where it is
not at all, whatever the units of the fields. Frames in time are judged together with those before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.data.equation_check import CONVENTIONS, equation_misfit, equation_parameters
from spectrakan.data.problems import Problem
from spectrakan.data.windows import Windows
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Trajectories, Window
from spectrakan.pde.equation import Equation

CONTEXT = 4
"""Frames before the first judged one that differences in time look back on."""
LARGEST = 0.3
"""Residual of the true frames themselves above which it would teach an operator something else than the data."""
WINDOWS_TRIED = 16


class PhysicsTerm:
    """The mean residual of predicted frames over a batch, differentiable in them.

    `trajectories` tell the constants of the equation and the names of the conditions of each sample; `config`
    are parameters that win over them, such as the convention under which a set was made.
    """

    def __init__(self, equation: Equation, trajectories: Trajectories, config: Mapping[str, Any]) -> None:
        if equation.residual is None:
            raise ConfigError(f"training.physics_weight: the residual of '{equation.name}' is not known; set it to 0")
        self.equation, self.trajectories, self.config = equation, trajectories, config
        self.residual = equation.residual

    def __call__(self, window: Window, pred: Float[Tensor, "batch time *space field"], free: int = 0) -> Tensor:
        """Physical frames `pred` that follow the window's inputs -> `()`; the first `free` are not judged."""
        judged = pred.shape[1] - free
        # No mixed precision here: differences of neighbours would drown in its rounding.
        with torch.autocast(pred.device.type, enabled=False):
            frames = pred.to(window.inputs.dtype)
            if not self.equation.steady:
                frames = torch.cat([window.inputs, frames], dim=1)[:, -(judged + CONTEXT) :]
            total = frames.new_zeros(())
            for rows, times, parameters in self._alike(window, pred.shape[1], frames.shape[1]):
                inputs = window.inputs[rows] if self.equation.steady else None
                residual = self.residual(frames[rows], inputs, times, parameters)
                total = total + residual[:, -judged:].mean(1).sum()
        return total / pred.shape[0]

    def _alike(self, window: Window, horizon: int, kept: int) -> list[tuple[list[int], list[float], Any]]:
        """Samples of equal time steps and conditions, because an equation takes one of each at a time."""
        count = window.inputs.shape[0]
        times = torch.zeros(count, 1, dtype=torch.float64)
        if not self.equation.steady:
            if window.times is None:
                raise ShapeError(
                    "frames in time can be put into their equation only if the window has times, got None"
                )
            times = window.times[:, : window.inputs.shape[1] + horizon][:, -kept:]
        conditions = [()] * count if window.params is None else [tuple(row) for row in window.params.tolist()]
        # Times are sums of steps, so equal steps differ by rounding.
        steps = [tuple(np.round(row, 9).tolist()) for row in times.diff(dim=1).numpy()]
        groups: dict[Any, list[int]] = {}
        for row, key in enumerate(zip(steps, conditions, strict=True)):
            groups.setdefault(key, []).append(row)
        return [
            (
                rows,
                times[rows[0]].tolist(),
                equation_parameters(self.equation, self.trajectories, condition, self.config),
            )
            for (_, condition), rows in groups.items()
        ]


def physics_term(problem: Problem, windows: Windows) -> PhysicsTerm:
    """The term for a problem's windows, under the convention that their true frames fit best.

    A problem without a residual, data that cannot be put into the equation, and data that do not solve it as stored
    (frames too far apart, or made otherwise) raise `ConfigError`.
    """
    equation = problem.equation
    if equation is None:
        raise ConfigError(f"training.physics_weight needs an equation, '{problem.name}' has none; set it to 0")
    if reason := equation_misfit(equation, windows.trajectories):
        raise ConfigError(f"training.physics_weight: {reason}; set it to 0")
    conventions = CONVENTIONS.get(equation.name, {"": {}}).values()
    terms = [PhysicsTerm(equation, windows.trajectories, config) for config in conventions]
    found, best = min(((_of_truth(term, windows), term) for term in terms), key=lambda pair: pair[0])
    if not found <= LARGEST:
        raise ConfigError(
            f"training.physics_weight: the true frames have a residual of {found:.2f} themselves (0 solves the "
            f"equation, 1 not at all; {LARGEST} is allowed): frames lie too far apart in time, or the data were made "
            "by another equation. Set it to 0"
        )
    return best


@torch.no_grad()
def _of_truth(term: PhysicsTerm, windows: Windows) -> float:
    """Median residual of the targets of some windows, spread over all."""
    chosen = np.unique(np.linspace(0, len(windows) - 1, WINDOWS_TRIED).round().astype(int)).tolist()
    tried = [windows.gather([index]) for index in chosen]
    return float(np.median([float(term(window, window.targets)) for window in tried]))
