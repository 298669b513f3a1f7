"""What the package needs of an equation to sample, solve and check it."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ConfigError
from spectrakan.fields import Boundary, FieldSpec, Grid

Positive = Annotated[float, Field(gt=0.0)]
"""A number above 0."""
NotNegative = Annotated[float, Field(ge=0.0)]
"""A number of at least 0."""
Range = tuple[float, float]
"""Lowest and highest value of a uniform draw."""

Sampler = Callable[[int, tuple[int, ...], Any, torch.Generator], Tensor]
"""(number of samples, cells per axis, parameters, generator) -> (samples, *space, channels), float64."""

Solver = Callable[[Tensor, Sequence[float], Any], Tensor]
"""(initial or input fields (B, *space, C), times, parameters) -> (B, len(times), *space, C), float64."""

P = TypeVar("P")


@settings
class NoParameters:
    """The parameters of an equation that has none."""


@dataclass(frozen=True)
class Equation:
    """A PDE with its domain, its defaults and its functions."""

    name: str
    fields: tuple[FieldSpec, ...]
    bounds: tuple[tuple[float, float], ...]
    boundary: tuple[Boundary, ...]
    resolution: tuple[int, ...]
    """Cells per axis of the task by default."""
    times: tuple[float, ...]
    """Times of the stored frames; a steady equation has one."""
    sample: Sampler
    solve: Solver
    history: int = 1
    summary: str = ""
    parameters: type[Any] = NoParameters
    """Settings class of the physical and numerical parameters; its defaults are the task's."""
    input_fields: tuple[FieldSpec, ...] = ()
    """Fields of the input of a steady equation; empty where the input is an earlier state."""
    batched_parameters: tuple[str, ...] = ()
    """Parameters that `solve` also takes as tensors `(B,)`, one value a sample (`with_values`)."""

    @property
    def steady(self) -> bool:
        """Whether the solution is a field other than the input, without time."""
        return bool(self.input_fields)

    def grid(self, resolution: Sequence[int] | None = None) -> Grid:
        """The equation's domain divided into equal cells."""
        return Grid.uniform(tuple(resolution or self.resolution), self.bounds, self.boundary)

    def solve_varied(
        self, initial: Tensor, times: Sequence[float], parameters: Any, values: Mapping[str, Tensor]
    ) -> Tensor:
        """Solve a batch whose samples have their own `values` `(B,)` of some parameters.

        One batch if `batched_parameters` names all of them, else sample by sample; the numbers are the same to
        rounding.
        """
        if set(values) <= set(self.batched_parameters):
            return self.solve(initial, times, with_values(parameters, values))
        solved = [
            self.solve(
                initial[index : index + 1],
                times,
                with_values(parameters, {name: float(value[index]) for name, value in values.items()}),
            )
            for index in range(len(initial))
        ]
        return torch.cat(solved)


def with_values(parameters: P, values: Mapping[str, Tensor | float]) -> P:
    """The parameters with other values, not checked again: numbers, or tensors `(B,)` with one value a sample.

    Settings hold plain numbers, so that they can be read from text; tensors exist only on the way to a solver.
    """
    changed = copy.copy(parameters)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed


def per_sample(value: float | Tensor, like: Tensor) -> Tensor:
    """A parameter in the type of `like` `(B, ...)`, shaped to broadcast over it: `(1, 1, ...)` or `(B, 1, ...)`."""
    return torch.as_tensor(value, dtype=like.dtype, device=like.device).reshape(-1, *[1] * (like.ndim - 1))


def part_of(parameters: P, names: Sequence[str], part: slice) -> P:
    """The parameters of some samples of a batch."""
    tensors = {name: value for name in names if isinstance(value := getattr(parameters, name), Tensor)}
    return with_values(parameters, {name: value[part] for name, value in tensors.items()}) if tensors else parameters


def check_ranges(parameters: Any, names: Sequence[str], positive: Sequence[str] = ()) -> None:
    """Refuse ranges (low, high) that are empty, or not above 0 where they must be."""
    for name in names:
        low, high = getattr(parameters, name)
        if not low <= high or (name in positive and low <= 0):
            raise ConfigError(f"{name} must be a range (low, high) of possible values, got {(low, high)}")
