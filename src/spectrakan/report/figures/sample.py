"""One sample of one field: what went in, what came, and what each model said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec, Grid

Values = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Sample:
    """What the maps of one field are drawn from, in physical units.

    `truth` and each of `predictions` `(time, *space)` at `times`; `given` `(history, *space)`, of the field
    `given_field` (a steady task's input) or, where that is None, earlier frames of `field` at `given_times`.
    """

    field: FieldSpec
    grid: Grid
    times: Sequence[float]
    truth: Values
    predictions: Mapping[str, Values]
    given: Values
    given_times: Sequence[float] = ()
    given_field: FieldSpec | None = None

    def __post_init__(self) -> None:
        expected = (len(self.times), *self.grid.shape)
        for name, values in {"truth": self.truth, **self.predictions}.items():
            if values.shape != expected:
                raise ShapeError(f"{name} must have shape {expected} = (time, *space), got {values.shape}")
        if self.given.shape[1:] != self.grid.shape or (self.given_times and len(self.given_times) != len(self.given)):
            raise ShapeError(
                f"given must have shape ({len(self.given_times) or 'history'}, *{self.grid.shape}), "
                f"got {self.given.shape}"
            )

    @property
    def steady(self) -> bool:
        """Whether the input is a field of another kind."""
        return self.given_field is not None

    def frame(self, time: float) -> int:
        """The place of an instant among the times; one that is not there raises `ConfigError`."""
        place = int(np.argmin([abs(each - time) for each in self.times]))
        if abs(self.times[place] - time) > 1e-6:
            raise ConfigError(f"there is no frame at t = {time:g}; known: {', '.join(f'{t:g}' for t in self.times)}")
        return place

    def error(self, model: str) -> Values:
        """Prediction minus truth `(time, *space)`."""
        return np.asarray(self.predictions[model], dtype=np.float64) - self.truth

    def rmse(self, model: str, frames: slice | Sequence[int] = slice(None)) -> float:
        """Root of the mean square error over the frames shown and the domain, cells weighted by volume."""
        squares = np.square(self.error(model)[frames]).mean(axis=0)
        return float(np.sqrt(np.sum(squares * self.grid.volumes().numpy())))

    def only(self, models: Sequence[str]) -> Sample:
        """The same sample with those models alone, in that order."""
        if unknown := [name for name in models if name not in self.predictions]:
            raise ConfigError(f"no prediction of {', '.join(unknown)}; known: {', '.join(self.predictions)}")
        chosen = {name: self.predictions[name] for name in models}
        return Sample(
            self.field, self.grid, self.times, self.truth, chosen, self.given, self.given_times, self.given_field
        )
