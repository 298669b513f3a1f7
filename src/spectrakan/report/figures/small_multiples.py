"""One small plot a task, side by side, with one legend for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectrakan.errors import ConfigError
from spectrakan.report.figures.appearance import blank_figure, look_of
from spectrakan.report.figures.blocks import balanced

WIDTH, HEIGHT, LEGEND = 2.3, 1.95, 0.5


def task_grid(tasks: Sequence[str], label: str, most_columns: int = 3) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one plot for each task, under its name; `label` stands at the left of each row."""
    if not tasks:
        raise ConfigError("there is no task to draw; give at least one")
    columns = min(len(tasks), most_columns)
    rows = -(-len(tasks) // columns)
    # Never narrower than its legend.
    figure = blank_figure(max(5.4, WIDTH * columns), HEIGHT * rows + LEGEND, constrained=True)
    plots = {}
    for place, task in enumerate(tasks, start=1):
        plots[task] = figure.add_subplot(rows, columns, place)
        plots[task].set_title(task, fontweight="bold")
        if place % columns == 1 or columns == 1:
            plots[task].set_ylabel(label)
    return figure, plots


def legend_below(figure: Figure, models: Sequence[str], *, lines: bool) -> None:
    """The look of every model, under the plots; without `lines` the markers alone."""
    handles = []
    for name in models:
        look = look_of(name)
        dash: Any = look.dash if lines else ""
        handles.append(
            Line2D(
                [], [], color=look.colour, linestyle=dash, marker=look.marker, label=look.label, linewidth=look.width
            )
        )
    columns = balanced(len(handles), int(figure.get_figwidth() / 1.1))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, columnspacing=1.2)
