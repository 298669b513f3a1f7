"""A few fields of one or two dimensions beside each other: the quick look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import ERROR, SEQUENTIAL, blank_figure, house_type
from spectrakan.report.figures.sample import Values


def fields_side_by_side(
    columns: Mapping[str, Values], error_columns: Sequence[str] = (), own_scale: Sequence[str] = ()
) -> Figure:
    """Fields `(nx,)` or `(nx, ny)` beside each other under their titles, on one scale of colour.

    Those named in `error_columns` are differences: they share a scale of their own, with zero in the middle.
    Each one in `own_scale` is coloured by its own range.
    """
    shapes = {values.shape for values in columns.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) not in (1, 2):
        raise ShapeError(f"fields of one shape with 1 or 2 axes can be drawn side by side, got {sorted(shapes)}")
    plain = [values for name, values in columns.items() if name not in (*error_columns, *own_scale)]
    signed = [values for name, values in columns.items() if name in error_columns]
    low, high = (float(np.min(plain)), float(np.max(plain))) if plain else (0.0, 1.0)
    widest = float(np.max(np.abs(signed))) if signed else 1.0
    with house_type():
        figure = blank_figure(2.6 * len(columns), 2.4, constrained=True)
        for place, (title, values) in enumerate(columns.items(), start=1):
            axes = figure.add_subplot(1, len(columns), place)
            axes.set_title(title)
            bounds, colours = ((-widest, widest), ERROR) if title in error_columns else ((low, high), SEQUENTIAL)
            if title in own_scale:
                bounds = (float(values.min()), float(values.max()))
            if values.ndim == 1:
                axes.plot(values)
                axes.set_ylim(*bounds)
                continue
            # The first axis of an array is x, to the right; images have it downwards.
            image = axes.imshow(values.T, origin="lower", vmin=bounds[0], vmax=bounds[1], cmap=colours)
            axes.set_xticks([])
            axes.set_yticks([])
            figure.colorbar(image, ax=axes, shrink=0.8)
        return figure
