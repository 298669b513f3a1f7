"""How far stored frames are from following one another, judged by the solver itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.pde.equation import Equation


def one_step_defect(equation: Equation, values: Tensor, times: Sequence[float], parameters: Any) -> Tensor:
    """Relative distance of each frame from the solution that starts at the frame before it.

    d_k = mean over fields of |u_{k+1} - S(t_{k+1} - t_k) u_k| / |u_{k+1}|, norms over space:
    `(batch, time, *space, channels)` -> `(batch, time - 1)`.
    Unlike a residual by differences it does not need frames that are close in time. Data from another good
    scheme differ by the errors of both; data of another equation, or damaged, stand out. Only for equations
    in time that do not depend on time itself.

    >>> from spectrakan.pde.diffusion_reaction1d import EQUATION, DiffusionReaction1DParameters
    >>> still = torch.full((1, 2, 8, 1), 0.5)  # growth makes 0.5 into 0.5250 by then
    >>> one_step_defect(EQUATION, still, [0.0, 0.1], DiffusionReaction1DParameters())
    tensor([[0.0500]], dtype=torch.float64)
    """
    if equation.steady or values.ndim < 3 or values.shape[1] != len(times) or len(times) < 2:
        raise ShapeError(
            "a defect needs an equation in time and 2 frames or more, (batch, time, *space, channels) with "
            f"one frame per time; got {equation.name} with {len(times)} times and {tuple(values.shape)}"
        )
    states = values.to(torch.float64)
    defect = states.new_empty((len(states), len(times) - 1))
    gaps = [round(float(after) - float(before), 12) for before, after in pairwise(times)]
    space = tuple(range(2, states.ndim - 1))
    for gap in sorted(set(gaps)):
        frames = [index for index, own in enumerate(gaps) if own == gap]
        starts, ends = states[:, frames], states[:, [index + 1 for index in frames]]
        reached = equation.solve(starts.flatten(0, 1), [gap], parameters)[:, 0].reshape(ends.shape)
        error = torch.linalg.vector_norm(ends - reached, dim=space)
        size = torch.linalg.vector_norm(ends, dim=space)
        defect[:, frames] = (error / size.clamp_min(torch.finfo(torch.float64).tiny)).mean(-1)
    return defect
