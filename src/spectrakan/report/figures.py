"""Figures as PNG bytes, from arrays."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError

Field = npt.NDArray[Any]


def fields_side_by_side(
    columns: Mapping[str, Field], error_columns: Sequence[str] = (), own_scale: Sequence[str] = ()
) -> bytes:
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
    figure = Figure(figsize=(2.6 * len(columns), 2.6), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (title, values) in enumerate(columns.items(), start=1):
        axes = figure.add_subplot(1, len(columns), place)
        axes.set_title(title, fontsize=9)
        bounds, colours = ((-widest, widest), "RdBu_r") if title in error_columns else ((low, high), "viridis")
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
    return _png(figure)


def error_against_time(times: Sequence[float], errors: Mapping[str, Sequence[float]], label: str) -> bytes:
    """One curve a model: how an error grows along a rollout."""
    figure = Figure(figsize=(6.0, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, values in errors.items():
        axes.semilogy(times, values, label=name)
    axes.set_xlabel("time")
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    axes.legend()
    return _png(figure)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    # Without metadata, so that the same numbers give the same bytes.
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()
