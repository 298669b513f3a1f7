"""Where maps, bars and words of a figure lie, counted in inches, so that nothing can overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import blank_figure
from spectrakan.report.figures.sample import Values
from spectrakan.report.figures.scale import Scale

Edges = npt.NDArray[np.float64]

LEFT, RIGHT, TOP, BOTTOM = 0.52, 0.08, 0.06, 0.42
ROW_NAME, TITLE_LINE, GAP, WIDE_GAP = 0.22, 0.155, 0.10, 0.50
BAR, BAR_STEP, BAR_BELOW = 0.10, 0.66, 0.52


@dataclass(frozen=True, eq=False)
class Panel:
    """One map: `values` `(vertical, horizontal)` in cells between `across` and `up` edges."""

    values: Values
    scale: Scale
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

    A text in place of a map is written there; None leaves the place empty.
    """

    cells: Sequence[Panel | str | None]
    scales: Sequence[Scale] = ()
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
    """Places of the numbers along the axis; chosen by the range where none are given."""
    up_ticks: Sequence[float] = ()


class Sheet:
    """An empty figure for rows of maps, and the places on it."""

    def __init__(self, rows: Sequence[Row], layout: Layout, barred_below: bool) -> None:
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
        self.height += BAR_BELOW if barred_below else 0.0
        self.bottoms: list[float] = []
        top = self.height - TOP
        for head, foot in zip(heads, feet, strict=True):
            self.bottoms.append(top - head - layout.height)
            top = self.bottoms[-1] - foot
        self.figure = blank_figure(self.width, self.height)

    def map(self, row: int, column: int) -> Axes:
        """The place of a map."""
        return self._axes(self.lefts[column], self.bottoms[row], self.layout.width, self.layout.height)

    def bar(self, row: int, place: int) -> Axes:
        """The place of a colour bar at the right of a row."""
        return self._axes(self.end + place * BAR_STEP, self.bottoms[row], BAR, self.layout.height)

    def bar_below(self, first: int, last: int) -> Axes:
        """The place of a colour bar under some columns."""
        width = self.lefts[last] + self.layout.width - self.lefts[first]
        return self._axes(self.lefts[first] + 0.1 * width, 0.36, 0.8 * width, BAR)

    def write(self, row: int, column: int, words: str) -> None:
        """Words in the place of a map."""
        across = (self.lefts[column] + 0.45 * self.layout.width) / self.width
        self.figure.text(across, self._middle(row), words, ha="center", va="center", fontsize=9)

    def name(self, row: int, words: str) -> None:
        """Words along the left side of a row."""
        across = 0.6 * ROW_NAME / self.width
        self.figure.text(across, self._middle(row), words, rotation=90, ha="center", va="center", fontweight="bold")

    def _middle(self, row: int) -> float:
        return (self.bottoms[row] + self.layout.height / 2) / self.height

    def _axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        return self.figure.add_axes(
            (left / self.width, bottom / self.height, width / self.width, height / self.height)
        )


def lowest(rows: Sequence[Row], row: int, column: int) -> bool:
    """Whether no map stands below this one, so that it has the numbers."""
    below = rows[row + 1].cells if row + 1 < len(rows) else ()
    return column >= len(below) or not isinstance(below[column], Panel)


def _foot_height(rows: Sequence[Row], row: int) -> float:
    """Room below a row: for numbers if one of its maps has them."""
    cells = rows[row].cells
    numbered = any(isinstance(cell, Panel) and lowest(rows, row, column) for column, cell in enumerate(cells))
    return BOTTOM if numbered else GAP


def _gap(rows: Sequence[Row], column: int) -> float:
    """Room for numbers between two maps where a row needs them."""
    crowded = any(
        column < len(row.cells) and row.numbered(column) and isinstance(row.cells[column - 1], Panel) for row in rows
    )
    return WIDE_GAP if crowded else GAP


def _title_height(row: Row) -> float:
    lines = [cell.title.count("\n") + 1 for cell in row.cells if isinstance(cell, Panel) and cell.title]
    return 0.05 + TITLE_LINE * max(lines) if lines else 0.0
