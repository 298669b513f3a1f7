"""Learned edge functions of a KAN: their curves, their knots, and the data's density beneath."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import blank_figure, house_type
from spectrakan.theory.edge_views import LayerView
from spectrakan.theory.symbolic import Suggestion

MOST_EDGES = 16
COLUMNS = 4


def edge_functions(
    view: LayerView,
    edges: Sequence[tuple[int, int]] | None = None,
    suggestions: Mapping[tuple[int, int], Suggestion] | None = None,
) -> Figure:
    """Edge functions with their knots as ticks below and the density of the data as a shade.

    `edges` are pairs (output, input); without them the widest are drawn. A suggested closed form is dashed.
    """
    chosen = widest_edges(view) if edges is None else list(edges)
    if not chosen:
        raise ShapeError("there must be at least one edge to draw, got none")
    columns = min(COLUMNS, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    with house_type():
        figure = blank_figure(2.2 * columns, 1.8 * rows, constrained=True)
        for place, edge in enumerate(chosen, start=1):
            _draw(figure.add_subplot(rows, columns, place), view, edge, (suggestions or {}).get(edge))
        return figure


def widest_edges(view: LayerView, most: int = MOST_EDGES) -> list[tuple[int, int]]:
    """The edges (output, input) that pass on most about the data, widest first."""
    spread = view.spread()
    order = spread.flatten().argsort(descending=True, stable=True)[:most]
    return [divmod(int(place), spread.shape[1]) for place in order]


def _draw(axes: Axes, view: LayerView, edge: tuple[int, int], suggestion: Suggestion | None) -> None:
    out, into = edge
    points, knots = view.points[into].numpy(), view.knots[into].numpy()
    sides, shares = (part[into].numpy() for part in view.density())
    shade = axes.twinx()
    shade.stairs(shares, sides, fill=True, color="0.88")
    shade.set_yticks([])
    # The curve lies above the shade although its axes were made first.
    axes.set_zorder(shade.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(points, view.curves[out, into].numpy(), color="C0")
    if suggestion is not None:
        axes.plot(points, suggestion(points), color="C1", linestyle="--", linewidth=1)
    axes.plot(knots, np.zeros(len(knots)), "|k", transform=axes.get_xaxis_transform(), clip_on=False)
    text = "" if suggestion is None else f"\n{suggestion.formula}  (R² {suggestion.r2:.3f})"
    axes.set_title(f"{into} → {out}{text}")
