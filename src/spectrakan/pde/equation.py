"""What the package must know of an equation to sample, solve and check it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spectrakan.fields import Boundary, FieldSpec, Grid

Sampler = Callable[[int, tuple[int, ...], Any, torch.Generator], Tensor]
"""(number of samples, cells per axis, parameters, generator) -> (samples, *space, channels), float64."""

Solver = Callable[[Tensor, Sequence[float], Any], Tensor]
"""(initial or input fields (B, *space, C), times, parameters) -> (B, len(times), *space, C), float64."""

Residual = Callable[[Tensor, Tensor | None, Sequence[float], Any], Tensor]
"""(values (B, T, *space, C), inputs or None, times, parameters) -> error of the equation per frame (B, T)."""


@dataclass(frozen=True)
class Equation:
    """A PDE with its domain, its defaults and its functions."""

    name: str
    summary: str
    fields: tuple[FieldSpec, ...]
    bounds: tuple[tuple[float, float], ...]
    boundary: tuple[Boundary, ...]
    resolution: tuple[int, ...]
    """Cells per axis of the task by default."""
    times: tuple[float, ...]
    """Times of the stored frames; a steady equation has one."""
    history: int
    parameters: type[Any]
    """Settings class of the physical and numerical parameters; its defaults are the task's.

    Two members mean something to whoever draws many samples: a setting `first_seed` is the number of the
    first sample, for families that count; a property `drawn_together` is how many must be drawn at once.
    """
    sample: Sampler
    solve: Solver
    input_fields: tuple[FieldSpec, ...] = ()
    """Fields of the input of a steady equation; empty where the input is an earlier state."""
    residual: Residual | None = None

    @property
    def steady(self) -> bool:
        """Whether the solution is another field than the input, at no time."""
        return bool(self.input_fields)

    def grid(self, resolution: Sequence[int] | None = None) -> Grid:
        """The equation's domain cut into equal cells."""
        return Grid.uniform(tuple(resolution or self.resolution), self.bounds, self.boundary)
