"""What a figure shows, read from its artists."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text


def maps(figure: Figure) -> list[Axes]:
    """The axes that hold a map."""
    return [axes for axes in figure.axes if not hasattr(axes, "_colorbar")]


def bars(figure: Figure) -> list[Axes]:
    """The axes that hold a colour bar."""
    return [axes for axes in figure.axes if hasattr(axes, "_colorbar")]


def mesh(axes: Axes) -> QuadMesh:
    """The mesh of a map."""
    (found,) = [artist for artist in axes.collections if isinstance(artist, QuadMesh)]
    return found


def drawn(axes: Axes) -> np.ndarray:
    """The numbers of a map, `(vertical, horizontal)`."""
    return np.asarray(mesh(axes).get_array())


def titled(figure: Figure, words: str) -> Axes:
    """The only map whose title begins so."""
    (found,) = [axes for axes in maps(figure) if axes.get_title().startswith(words)]
    return found


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that are written over each other, and texts that leave the figure."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    edge = figure.bbox
    unseen = _numbers(figure, seen=False) - _numbers(figure, seen=True)
    boxes = []
    for artist in figure.findobj(Text):
        if not artist.get_visible() or not artist.get_text().strip() or artist in unseen:
            continue
        box = artist.get_window_extent(renderer)
        if box.width and box.height:
            boxes.append((artist.get_text(), box))
    faults = [
        (one, other)
        for (one, first), (other, second) in combinations(boxes, 2)
        if min(first.x1, second.x1) - max(first.x0, second.x0) > 1
        and min(first.y1, second.y1) - max(first.y0, second.y0) > 1
    ]
    outside = [
        (text, "the figure's edge")
        for text, box in boxes
        if box.x0 < -1 or box.y0 < -1 or box.x1 > edge.x1 + 1 or box.y1 > edge.y1 + 1
    ]
    return faults + outside


def _numbers(figure: Figure, *, seen: bool) -> set[Text]:
    """The numbers along all axes; those beyond the ends of an axis exist but are not drawn."""
    axes = [axis for each in figure.axes for axis in (each.xaxis, each.yaxis)]
    ticks = [tick for axis in axes for tick in (axis._update_ticks() if seen else axis.majorTicks + axis.minorTicks)]
    return {label for tick in ticks for label in (tick.label1, tick.label2)}
