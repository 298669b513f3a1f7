"""A set of solutions of one PDE: many samples, each a field in time, all on one grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from spectrakan.errors import ShapeError
from spectrakan.fields.grid import Grid


@runtime_checkable
class Array(Protocol):
    """What an array must offer here: a NumPy array, or one that is read from a file piece by piece."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        ...

    def __getitem__(self, key: Any, /) -> Any:
        """The part that `key` names, as a NumPy array."""
        ...

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> npt.NDArray[Any]:
        """The whole, as a NumPy array."""
        ...


@dataclass(frozen=True)
class FieldSpec:
    """What one channel of an array means."""

    name: str
    unit: str = ""
    positive: bool = False
    """Whether the quantity cannot be zero or below (density, pressure), so that its logarithm exists."""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Solutions `values` `(samples, time, *space, channel)` on `grid` at `times`.

    Steady tasks have one frame and their own input fields `inputs` `(samples, 1, *space, channel)`;
    in time-dependent tasks the inputs are earlier frames of `values` and `inputs` is None.
    `params` `(samples, num_params)` are scalars that differ between samples, named by `param_names`.
    Arrays keep the order and the type of number they were stored with.
    """

    values: Array
    grid: Grid
    times: npt.NDArray[np.float64]
    fields: tuple[FieldSpec, ...]
    inputs: Array | None = None
    input_fields: tuple[FieldSpec, ...] = ()
    params: npt.NDArray[np.float64] | None = None
    param_names: tuple[str, ...] = ()
    task: str = ""
    """Name of the task that the data belong to; empty when unknown."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """Physical parameters that all samples share (viscosity, forcing), as far as they are known."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """`seed` and `params` that `generate` made the samples from, so that the same ones can be solved on another
    grid or for longer; empty where they were not generated, or were changed since."""

    def __post_init__(self) -> None:
        space = self.grid.shape
        _check("values", self.values.shape, (None, len(self.times), *space, len(self.fields)))
        if self.inputs is not None:
            _check("inputs", self.inputs.shape, (self.num_samples, 1, *space, len(self.input_fields)))
            if len(self.times) != 1:
                raise ShapeError(f"a steady task has one frame, got {len(self.times)} beside separate inputs")
        if self.params is not None:
            _check("params", self.params.shape, (self.num_samples, len(self.param_names)))
        elif self.param_names:
            raise ShapeError(f"params {self.param_names} are named but not given")

    @property
    def num_samples(self) -> int:
        """Number of trajectories."""
        return int(self.values.shape[0])

    @property
    def steady(self) -> bool:
        """Whether inputs and outputs are different fields of one instant."""
        return self.inputs is not None

    def __len__(self) -> int:
        return self.num_samples


def _check(name: str, shape: tuple[int, ...], expected: tuple[int | None, ...]) -> None:
    fits = len(shape) == len(expected) and all(
        want is None or have == want for have, want in zip(shape, expected, strict=True)
    )
    if not fits:
        wanted = ", ".join("samples" if size is None else str(size) for size in expected)
        raise ShapeError(f"{name} must have shape ({wanted}) to fit grid, times and fields, got {tuple(shape)}")
