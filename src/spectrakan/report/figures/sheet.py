"""Rows of small maps with their colour bars; all positions are in inches, so that nothing can overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import blank_figure, figure_style
from spectrakan.report.figures.sample import ColourScale, Values

Edges = npt.NDArray[np.float64]

LEFT, RIGHT, TOP, BOTTOM = 0.52, 0.08, 0.06, 0.42
ROW_NAME, TITLE_LINE, GAP, WIDE_GAP = 0.22, 0.155, 0.10, 0.50
BAR, BAR_STEP = 0.10, 0.66
STEPS = [1, 2, 2.5, 5, 10]


@dataclass(frozen=True, eq=False)
class Panel:
    """One map: `values` `(vertical, horizontal)` in cells between `across` and `up` edges."""

    values: Values
    scale: ColourScale
    title: str
    across: Edges
    up: Edges

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.up) - 1, len(self.across) - 1):
            raise ShapeError(
                f"'{self.title}' has {self.values.shape} values for {len(self.up) - 1} cells upwards "
                f"and {len(self.across) - 1} across"
            )


@dataclass(frozen=True, eq=False)
class Row:
    """Maps beside each other, the scales shown at their right, and a name at their left.

    A text in place of a map is written there; None leaves the cell empty.
    """

    cells: Sequence[Panel | str | None]
    scales: Sequence[ColourScale] = ()
    name: str = ""

    def numbered(self, column: int) -> bool:
        """Whether a map has numbers of its own at its left: no map before it has the same axis."""
        before, own = self.cells[column - 1] if column else None, self.cells[column]
        if not isinstance(own, Panel) or not isinstance(before, Panel):
            return isinstance(own, Panel)
        return not np.array_equal(before.up, own.up)


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


class Sheet:
    """An empty figure for rows of maps, and the positions on it."""

    def __init__(self, rows: Sequence[Row], layout: Layout) -> None:
        self.layout = layout
        named = ROW_NAME if any(row.name for row in rows) else 0.0
        self.lefts = [LEFT + named]
        for column in range(1, max(len(row.cells) for row in rows)):
            self.lefts.append(self.lefts[-1] + layout.width + _gap(rows, column))
        self.end = self.lefts[-1] + layout.width + GAP
        self.width = self.end + BAR_STEP * max(len(row.scales) for row in rows) + RIGHT
        heads = [_title_height(row) for row in rows]
        feet = [_foot_height(rows, index) for index in range(len(rows))]
        self.height = TOP + sum(heads) + sum(feet) + len(rows) * layout.height
        self.bottoms: list[float] = []
        top = self.height - TOP
        for head, foot in zip(heads, feet, strict=True):
            self.bottoms.append(top - head - layout.height)
            top = self.bottoms[-1] - foot
        self.figure = blank_figure(self.width, self.height)

    def map(self, row: int, column: int) -> Axes:
        """The axes of a map."""
        return self._axes(self.lefts[column], self.bottoms[row], self.layout.width, self.layout.height)

    def bar(self, row: int, index: int) -> Axes:
        """The axes of a colour bar at the right of a row."""
        return self._axes(self.end + index * BAR_STEP, self.bottoms[row], BAR, self.layout.height)

    def write(self, row: int, across: float, text: str, **style: Any) -> None:
        """A text in the middle of a row, `across` inches from the left."""
        middle = self.bottoms[row] + self.layout.height / 2
        self.figure.text(across / self.width, middle / self.height, text, ha="center", va="center", **style)

    def _axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        box = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(box)


def lowest(rows: Sequence[Row], row: int, column: int) -> bool:
    """Whether no map is below this one, so that it has the numbers."""
    below = rows[row + 1].cells if row + 1 < len(rows) else ()
    return column >= len(below) or not isinstance(below[column], Panel)


def _foot_height(rows: Sequence[Row], row: int) -> float:
    """Space below a row: for numbers if one of its maps has them."""
    cells = rows[row].cells
    numbered = any(isinstance(cell, Panel) and lowest(rows, row, column) for column, cell in enumerate(cells))
    return BOTTOM if numbered else GAP


def _gap(rows: Sequence[Row], column: int) -> float:
    """Space for numbers between two maps where a row needs them."""
    crowded = any(
        column < len(row.cells) and row.numbered(column) and isinstance(row.cells[column - 1], Panel) for row in rows
    )
    return WIDE_GAP if crowded else GAP


def _title_height(row: Row) -> float:
    lines = [cell.title.count("\n") + 1 for cell in row.cells if isinstance(cell, Panel) and cell.title]
    return 0.05 + TITLE_LINE * max(lines) if lines else 0.0


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
    with figure_style():
        sheet = Sheet(rows, layout)
        for index, row in enumerate(rows):
            for column, cell in enumerate(row.cells):
                if isinstance(cell, Panel):
                    below = lowest(rows, index, column)
                    _draw(sheet.map(index, column), cell, layout, left=row.numbered(column), below=below)
                elif cell:
                    sheet.write(index, sheet.lefts[column] + 0.45 * layout.width, cell, fontsize=9)
            for number, scale in enumerate(row.scales):
                _bar(sheet.bar(index, number), scale)
            if row.name:
                sheet.write(index, 0.6 * ROW_NAME, row.name, rotation=90, fontweight="bold")
        return sheet.figure


def _draw(axes: Axes, panel: Panel, layout: Layout, *, left: bool, below: bool) -> None:
    # A prediction that is not a number is drawn grey, not left white as if it were an error of zero.
    axes.set_facecolor("0.6")
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
    # Numbers at the corners of a map are aligned inwards, so that those of neighbours do not overlap.
    for label, share in _labels(axes.get_xticklabels(), axes.get_xticks(), *axes.get_xlim()):
        label.set_horizontalalignment("left" if share < 0.05 else "right" if share > 0.95 else "center")
    for label, share in _labels(axes.get_yticklabels(), axes.get_yticks(), *axes.get_ylim()):
        label.set_verticalalignment("bottom" if share < 0.03 else "top" if share > 0.97 else "center_baseline")


def _ticks(given: Sequence[float], low: float, high: float) -> list[float]:
    found = given or MaxNLocator(3, steps=STEPS).tick_values(low, high)
    slack = 1e-9 * (high - low)
    return [float(tick) for tick in found if low - slack <= tick <= high + slack]


def _labels(labels: Sequence[Text], ticks: Iterable[float], low: float, high: float) -> list[tuple[Text, float]]:
    """The numbers of an axis, each with its position from 0 to 1; none where the axis has no numbers."""
    return [(label, (tick - low) / (high - low)) for label, tick in zip(labels, ticks, strict=False)]


def _bar(axes: Axes, scale: ColourScale) -> None:
    source: Any = ScalarMappable(Normalize(scale.low, scale.high), scale.colours)
    bar = axes.figure.colorbar(source, cax=axes, extend=scale.extend, extendfrac=0.05)
    bar.outline.set_linewidth(0.6)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=6.5, pad=1.5)
    axes.yaxis.get_offset_text().set(fontsize=6.5, ha="left", position=(0.0, 1.0))
    bar.set_label(scale.label, labelpad=1.0)
    # The same distance from every bar, whatever the width of its numbers.
    axes.yaxis.set_label_coords(0.46 / BAR, 0.5)
