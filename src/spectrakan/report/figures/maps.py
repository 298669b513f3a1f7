"""Maps of truth, predictions and errors, on colour scales that all of them share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.fields import FieldSpec, Grid
from spectrakan.report.figures.appearance import (
    ERROR,
    SEQUENTIAL,
    SIGNED,
    blank_figure,
    field_label,
    figure_style,
    look_of,
)

Values = npt.NDArray[np.floating]
Extend = Literal["neither", "min", "max", "both"]
BOTH_SIGNS = 0.2
"""A field whose smaller extreme is at least this share of the larger one, with the other sign, is drawn as signed."""


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


def field_maps(
    field: FieldSpec, grid: Grid, truth: Values, predictions: Mapping[str, Values], times: Sequence[float] = ()
) -> Figure:
    """The truth, then each model's prediction above its error; one colour scale for fields, another for errors.

    Fields are `(nx, ny)` on two axes of space, x to the right; on one axis `(time, nx)` at `times`, time upwards.
    What is not a number is grey. A title has the RMSE over all that is drawn, cells weighted by volume.

    >>> grid = Grid.uniform((4, 3))
    >>> figure = field_maps(FieldSpec("u"), grid, np.zeros((4, 3)), {"fno": np.full((4, 3), 0.5)})
    >>> [axes.get_title() for axes in figure.axes[:3]]
    ['truth', 'FNO\\nRMSE 0.5', 'error']
    """
    plane = len(grid.shape) == 2
    expected = grid.shape if plane else (len(times), *grid.shape)
    for name, values in {"truth": truth, **predictions}.items():
        if len(expected) != 2 or values.shape != expected:
            raise ShapeError(
                f"{name} must be (nx, ny), or (time, nx) with times, on the grid {grid.shape}, got {values.shape}"
            )
    wrong = {name: np.asarray(values, dtype=np.float64) - truth for name, values in predictions.items()}
    colours = field_scale(truth, list(predictions.values()), field_label(field))
    errors = error_scale(list(wrong.values()))
    across, up = grid.coordinates[0].numpy(), grid.coordinates[1].numpy() if plane else np.asarray(times)
    with figure_style():
        figure = blank_figure(1.7 * (1 + len(predictions)) + 1.2, 3.8)
        panels = figure.subplots(2, 1 + len(predictions), squeeze=False, sharex=True, sharey=True)
        panels[1][0].remove()
        shown: list[tuple[Any, Values, ColourScale, str]] = [(panels[0][0], truth, colours, "truth")]
        for column, (name, values) in enumerate(predictions.items(), start=1):
            squares = np.square(wrong[name]).reshape(-1, *grid.shape).mean(axis=0)
            error = float(np.sqrt((squares * grid.volumes().numpy()).sum()))
            shown.append((panels[0][column], values, colours, f"{look_of(name).label}\nRMSE {error:.3g}"))
            shown.append((panels[1][column], wrong[name], errors, "error"))
        for axes, values, scale, title in shown:
            axes.set_facecolor("0.6")
            drawn = np.ma.masked_invalid(values.T if plane else values)
            limits: Any = {"vmin": scale.low, "vmax": scale.high, "cmap": scale.colours}
            axes.pcolormesh(across, up, drawn, shading="nearest", rasterized=True, **limits)
            axes.set_title(title)
            axes.set_xlabel("" if axes in panels[0][1:] else "x")
        panels[0][0].tick_params(labelbottom=True)
        panels[0][0].set_ylabel("y" if plane else "t")
        for row, scale in zip(panels, (colours, errors), strict=True):
            source = ScalarMappable(Normalize(scale.low, scale.high), scale.colours)
            figure.colorbar(source, ax=[axes for axes in row if axes.figure], extend=scale.extend, label=scale.label)
        return figure
