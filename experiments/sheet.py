"""Rows of small maps on shared colour scales with their bars, laid out by matplotlib so that nothing overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spectrakan.report.figures.appearance import blank_figure, figure_style
from spectrakan.report.figures.maps import ColourScale, Values

Edges = npt.NDArray[np.float64]

MARGIN, GAP, BAR, TITLE_LINE, NUMBERS = 0.8, 0.12, 0.85, 0.16, 0.3
"""Inches beside the maps of a row, between two of them, of a colour bar, of a line of a title, and below a map."""
STEPS = [1, 2, 2.5, 5, 10]


@dataclass(frozen=True, eq=False)
class Panel:
    """One map: `values` `(vertical, horizontal)` in cells between `across` and `up` edges."""

    values: Values
    scale: ColourScale
    title: str
    across: Edges
    up: Edges


@dataclass(frozen=True, eq=False)
class Row:
    """Maps beside each other, the scales shown at their right, and a name at their left.

    A text in place of a map is written there; None leaves the cell empty.
    """

    cells: Sequence[Panel | str | None]
    scales: Sequence[ColourScale] = ()
    name: str = ""


@dataclass(frozen=True)
class Layout:
    """Size of a map in inches and what its axes measure."""

    width: float
    height: float
    across: str
    up: str
    across_ticks: Sequence[float] = ()
    """Positions of the numbers along the axis; chosen by the range where none are given."""
    up_ticks: Sequence[float] = ()


def pair_rows(pairs: Sequence[tuple[Panel, Panel]], columns: int) -> list[Row]:
    """Maps above each other, pairs from left to right, then in further bands; a band shows each scale once."""
    rows = []
    for first in range(0, len(pairs), columns):
        above, below = zip(*pairs[first : first + columns], strict=True)
        shown = _scales(above)
        rows += [Row(above, shown), Row(below, [scale for scale in _scales(below) if scale not in shown])]
    return rows


def balanced(count: int, most: int) -> int:
    """Columns for `count` things, at most `most`, so that the last row is not nearly empty.

    >>> balanced(10, 6), balanced(7, 6), balanced(4, 6)
    (5, 4, 4)
    """
    bands = -(-count // most)
    return -(-count // bands)


def _scales(panels: Sequence[Panel]) -> list[ColourScale]:
    """The scales of a row, the one that most maps share first."""
    return list({id(panel.scale): panel.scale for panel in reversed(panels)}.values())


def draw_rows(rows: Sequence[Row], layout: Layout) -> Figure:
    """Lay the rows out below each other; axes are numbered where no map beside or below has the same numbers."""
    columns, bars = (
        max(len(part) for part in parts) for parts in zip(*((r.cells, r.scales) for r in rows), strict=True)
    )
    lines = [
        max((c.title.count("\n") + 1 for c in row.cells if isinstance(c, Panel) and c.title), default=0)
        for row in rows
    ]
    width = MARGIN + columns * (layout.width + GAP) + bars * BAR
    height = len(rows) * (layout.height + NUMBERS) + sum(lines) * TITLE_LINE
    with figure_style():
        figure = blank_figure(width, height, arranged="compressed")
        grid = figure.subplots(len(rows), columns, squeeze=False)
        for index, row in enumerate(rows):
            cells = [*row.cells, *[None] * (columns - len(row.cells))]
            for column, (axes, cell) in enumerate(zip(grid[index], cells, strict=True)):
                if isinstance(cell, Panel):
                    before = cells[column - 1] if column else None
                    left = not isinstance(before, Panel) or not np.array_equal(before.up, cell.up)
                    under = rows[index + 1].cells if index + 1 < len(rows) else ()
                    lowest = column >= len(under) or not isinstance(under[column], Panel)
                    _draw(axes, cell, layout, left=left, below=lowest)
                    continue
                axes.set_axis_off()
                axes.text(0.5, 0.5, cell or "", fontsize=9, ha="center", va="center")
            # Each further bar is put nearest to the maps.
            for scale in reversed(row.scales):
                _bar(figure, list(grid[index]), scale)
            if row.name:
                style: Any = {"rotation": 90, "fontweight": "bold", "ha": "right", "va": "center"}
                place: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
                grid[index][0].annotate(row.name, (0.0, 0.5), (-36.0, 0.0), **place, **style)
        # Positions are settled once: what is written later needs no layout again.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        return figure


def _draw(axes: Axes, panel: Panel, layout: Layout, *, left: bool, below: bool) -> None:
    # A prediction that is not a number is drawn grey, not left white as if it were an error of zero.
    axes.set_facecolor("0.6")
    axes.set_box_aspect(layout.height / layout.width)
    scale = panel.scale
    axes.pcolormesh(
        panel.across, panel.up, np.ma.masked_invalid(panel.values),
        vmin=scale.low, vmax=scale.high, cmap=scale.colours, rasterized=True,
    )  # fmt: skip
    axes.set_title(panel.title, pad=3.0, linespacing=1.15)
    axes.set_xticks(_ticks(layout.across_ticks, *axes.get_xlim()))
    axes.set_yticks(_ticks(layout.up_ticks, *axes.get_ylim()))
    axes.tick_params(labelleft=left, labelbottom=below)
    if left:
        axes.set_ylabel(layout.up, labelpad=2.0)
    if below:
        axes.set_xlabel(layout.across, labelpad=1.5)


def _ticks(given: Sequence[float], low: float, high: float) -> list[float]:
    found = given or MaxNLocator(3, steps=STEPS).tick_values(low, high)
    slack = 1e-9 * (high - low)
    return [float(tick) for tick in found if low - slack <= tick <= high + slack]


def _bar(figure: Figure, beside: list[Axes], scale: ColourScale) -> None:
    """A colour bar at the right of a row."""
    source: Any = ScalarMappable(Normalize(scale.low, scale.high), scale.colours)
    bar = figure.colorbar(source, ax=beside, extend=scale.extend, extendfrac=0.05, aspect=14, pad=0.02)
    bar.outline.set_linewidth(0.6)
    bar.ax.yaxis.set_major_locator(MaxNLocator(4))
    bar.ax.tick_params(labelsize=6.5, pad=1.5)
    bar.ax.yaxis.get_offset_text().set(fontsize=6.5, ha="left", position=(0.0, 1.0))
    bar.set_label(scale.label, labelpad=1.0)
