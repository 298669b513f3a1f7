"""Operators whose answers, and so whose scores, are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from spectrakan.data.generate import solve
from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages
from spectrakan.models.trivial import TrivialConfig
from spectrakan.nn.axis import Axis


class Scaled(Operator):
    """The last frame times a factor, plus a shift."""

    name = "scaled"

    def __init__(self, signature: OperatorSignature, factor: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(signature, TrivialConfig(), Stages(predict="direct", noise_level=0.0, range_margin=None))
        self.factor, self.shift = factor, shift

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        return self.factor * history[:, -1] + self.shift


class Solver(Operator):
    """The project's own solver over one step of time (or of a steady task), and nothing learned."""

    name = "solver"

    def __init__(self, task: str, signature: OperatorSignature, step: float = 0.0, factor: float = 1.0) -> None:
        super().__init__(signature, TrivialConfig(), Stages(predict="direct", noise_level=0.0, range_margin=None))
        self.task, self.step, self.factor = task, step, factor

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        solved = solve(self.task, history[:, -1], [self.step])[:, 0]
        return self.factor * solved.to(history.dtype)


def evolving(space: tuple[int, ...] = (16,), fields: int = 1, history: int = 1) -> OperatorSignature:
    return OperatorSignature(space_dims=len(space), history=history, in_channels=fields, out_channels=fields)


def held(samples: int, frames: int, space: tuple[int, ...] = (16,), step: float = 0.5) -> Trajectories:
    """One field `u` that keeps its values from 1 to 2 for ever; samples differ."""
    generator = torch.Generator().manual_seed(0)
    start = 1.0 + torch.rand(samples, 1, *space, 1, generator=generator, dtype=torch.float64)
    values = start.expand(samples, frames, *space, 1).numpy().copy()
    return Trajectories(values, Grid.uniform(space), step * np.arange(frames), (FieldSpec("u"),))
