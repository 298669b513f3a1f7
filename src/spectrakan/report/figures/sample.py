"""One field of one sample: input, truth and predictions, and the colour scales they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from spectrakan.errors import ShapeError
from spectrakan.fields import FieldSpec, Grid
from spectrakan.report.figures.appearance import ERROR, SEQUENTIAL, SIGNED

Values = npt.NDArray[np.floating]
Extend = Literal["neither", "min", "max", "both"]
BOTH_SIGNS = 0.2
"""A field whose smaller extreme is at least this share of the larger one, with the other sign, is drawn as signed."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Input, truth and predictions of one field, in physical units.

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
        """Whether the input is another field."""
        return self.given_field is not None

    def error(self, model: str) -> Values:
        """Prediction minus truth `(time, *space)`."""
        return np.asarray(self.predictions[model], dtype=np.float64) - self.truth

    def rmse(self, model: str, frames: slice | Sequence[int] = slice(None)) -> float:
        """Root of the mean square error over the frames shown and the domain, cells weighted by volume."""
        squares = np.square(self.error(model)[frames]).mean(axis=0)
        return float(np.sqrt(np.sum(squares * self.grid.volumes().numpy())))


@dataclass(frozen=True)
class ColourScale:
    """Values from `low` to `high` in the colours of `colours`; `extend` says where values lie beyond."""

    low: float
    high: float
    colours: str
    label: str
    extend: Extend = "neither"


def field_scale(truth: Values, predictions: Sequence[Values], label: str, colours: str = SEQUENTIAL) -> ColourScale:
    """The range of the truth, shared by the predictions: one that diverges does not hide the others.

    Where the truth has both signs, zero is the middle colour.
    """
    low, high = _range(truth)
    if min(-low, high) > BOTH_SIGNS * max(-low, high) > 0:
        high = max(-low, high)
        low, colours = -high, SIGNED
    return ColourScale(low, high, colours, label, _beyond([truth, *predictions], low, high))


def error_scale(errors: Sequence[Values], label: str = "error") -> ColourScale:
    """Symmetric about zero, as wide as the largest error of the model in the middle of the ranking.

    So differences within the better half of the models are visible; arrows on the colour bar mark larger errors.
    """
    finite = [float(np.max(np.abs(error[np.isfinite(error)]), initial=0.0)) for error in errors]
    widest = float(np.median(finite)) if finite else 0.0
    widest = widest if widest > 0 else 1.0
    return ColourScale(-widest, widest, ERROR, label, _beyond(errors, -widest, widest))


def _range(values: Values) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    # A constant field still needs a scale of some width.
    return (low, high) if high > low else (low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0))


def _beyond(arrays: Sequence[Values], low: float, high: float) -> Extend:
    slack = 1e-6 * (high - low)
    under = any(bool((values < low - slack).any()) for values in arrays)
    over = any(bool((values > high + slack).any()) for values in arrays)
    extends: dict[tuple[bool, bool], Extend] = {(True, True): "both", (True, False): "min", (False, True): "max"}
    return extends.get((under, over), "neither")
