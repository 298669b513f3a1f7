"""Rows of small maps with their colour bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from spectrakan.report.figures.appearance import house_type
from spectrakan.report.figures.scale import Scale
from spectrakan.report.figures.sheet import BAR, Layout, Panel, Row, Sheet, lowest

STEPS = [1, 2, 2.5, 5, 10]


@dataclass(frozen=True)
class BarBelow:
    """A horizontal colour bar under the columns from `first` to `last`."""

    scale: Scale
    first: int
    last: int


def draw_rows(rows: Sequence[Row], layout: Layout, below: Sequence[BarBelow] = ()) -> Figure:
    """Lay the rows out below each other; axes are numbered where no map beside or below has the same numbers."""
    with house_type():
        sheet = Sheet(rows, layout, bool(below))
        for index, row in enumerate(rows):
            for column, cell in enumerate(row.cells):
                if isinstance(cell, Panel):
                    axes = sheet.map(index, column)
                    _draw(axes, cell)
                    _number(axes, layout, left=row.numbered(column), below=lowest(rows, index, column))
                elif cell:
                    sheet.write(index, column, cell)
            for place, scale in enumerate(row.scales):
                _bar(sheet.bar(index, place), scale, "vertical")
            if row.name:
                sheet.name(index, row.name)
        for each in below:
            _bar(sheet.bar_below(each.first, each.last), each.scale, "horizontal")
        return sheet.figure


def _draw(axes: Axes, panel: Panel) -> None:
    # A prediction that is not a number is drawn grey, not left white as if it were an error of zero.
    axes.set_facecolor("0.6")
    scale = panel.scale
    axes.pcolormesh(
        panel.across, panel.up, np.ma.masked_invalid(panel.values),
        vmin=scale.low, vmax=scale.high, cmap=scale.colours, rasterized=True,
    )  # fmt: skip
    axes.set_title(panel.title, pad=3.0, linespacing=1.15)


def _number(axes: Axes, layout: Layout, *, left: bool, below: bool) -> None:
    axes.set_xticks(_ticks(layout.across_ticks, *axes.get_xlim()))
    axes.set_yticks(_ticks(layout.up_ticks, *axes.get_ylim()))
    axes.tick_params(labelleft=left, labelbottom=below)
    if left:
        axes.set_ylabel(layout.up, labelpad=2.0)
    if below:
        axes.set_xlabel(layout.across, labelpad=1.5)
    _turn_inwards(axes)


def _ticks(wanted: Sequence[float], low: float, high: float) -> list[float]:
    found = wanted or MaxNLocator(3, steps=STEPS).tick_values(low, high)
    slack = 1e-9 * (high - low)
    return [float(tick) for tick in found if low - slack <= tick <= high + slack]


def _turn_inwards(axes: Axes) -> None:
    """Numbers at the corners of a map stand beside its own edge, or neighbours would write over each other."""
    for label, share in _labels(axes.get_xticklabels(), axes.get_xticks(), *axes.get_xlim()):
        label.set_horizontalalignment("left" if share < 0.05 else "right" if share > 0.95 else "center")
    for label, share in _labels(axes.get_yticklabels(), axes.get_yticks(), *axes.get_ylim()):
        label.set_verticalalignment("bottom" if share < 0.03 else "top" if share > 0.97 else "center_baseline")


def _labels(labels: Sequence[Text], ticks: Iterable[float], low: float, high: float) -> list[tuple[Text, float]]:
    """The numbers of an axis, each with its place from 0 to 1; none where the axis has no numbers."""
    return [(label, (tick - low) / (high - low)) for label, tick in zip(labels, ticks, strict=False)]


def _bar(axes: Axes, scale: Scale, orientation: Literal["vertical", "horizontal"]) -> None:
    source: Any = ScalarMappable(Normalize(scale.low, scale.high), scale.colours)
    bar = axes.figure.colorbar(source, cax=axes, orientation=orientation, extend=scale.extend, extendfrac=0.05)
    bar.outline.set_linewidth(0.6)
    axis = axes.yaxis if orientation == "vertical" else axes.xaxis
    axis.set_major_locator(MaxNLocator(4))
    axis.get_offset_text().set_fontsize(6.5)
    axes.tick_params(labelsize=6.5, pad=1.5)
    bar.set_label(scale.label, labelpad=1.0)
    if orientation == "vertical":
        axis.get_offset_text().set(ha="left", position=(0.0, 1.0))
        # The same distance from every bar, however long its numbers are.
        axis.set_label_coords(0.46 / BAR, 0.5)
