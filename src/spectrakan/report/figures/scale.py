"""From numbers to colours: one scale for a truth and its predictions, one with zero in the middle for errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spectrakan.report.figures.appearance import ERROR, SEQUENTIAL, SIGNED
from spectrakan.report.figures.sample import Values

Extend = Literal["neither", "min", "max", "both"]
BOTH_SIGNS = 0.2
"""A field whose smaller extreme is at least this share of the larger one, with the other sign, is drawn as signed."""


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` in the colours of `colours`; `extend` says where values lie beyond."""

    low: float
    high: float
    colours: str
    label: str
    extend: Extend = "neither"


def field_scale(truth: Values, predictions: Sequence[Values], label: str, colours: str = SEQUENTIAL) -> Scale:
    """The range of the truth, which predictions share, so that one that explodes does not hide the others.

    Where the truth has both signs, zero is the middle colour.
    """
    low, high = _range(truth)
    if min(-low, high) > BOTH_SIGNS * max(-low, high) > 0:
        high = max(-low, high)
        low, colours = -high, SIGNED
    return Scale(low, high, colours, label, _beyond([truth, *predictions], low, high))


def error_scale(errors: Sequence[Values], label: str = "error") -> Scale:
    """Symmetric about zero, as wide as the largest error of the model in the middle of the ranking.

    So the good half of the models is told apart, and the colour bar's arrows say that others go beyond.
    """
    finite = [float(np.max(np.abs(error[np.isfinite(error)]), initial=0.0)) for error in errors]
    widest = float(np.median(finite)) if finite else 0.0
    widest = widest if widest > 0 else 1.0
    return Scale(-widest, widest, ERROR, label, _beyond(errors, -widest, widest))


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
    if under and over:
        return "both"
    return "min" if under else "max" if over else "neither"
