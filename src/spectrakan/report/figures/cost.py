"""What accuracy costs: error against seconds of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectrakan.report.figures.appearance import house_type, look_of
from spectrakan.report.figures.lines import plain_grid, plain_logarithms
from spectrakan.report.figures.small_multiples import legend_below, task_grid


@dataclass(frozen=True)
class Spent:
    """Seconds and errors of a model's runs, one number a seed."""

    seconds: Sequence[float]
    errors: Sequence[float]

    @property
    def middle(self) -> tuple[float, float]:
        """Mean seconds and mean error."""
        return float(np.mean(self.seconds)), float(np.mean(self.errors))


def accuracy_against_seconds(runs: Mapping[str, Mapping[str, Spent]], label: str) -> Figure:
    """By task and model: the mean over seeds as a marker, the spread of the errors as a bar.

    The stairs join the models that no other beats in both: whoever lies above them spends more for less.
    """
    with house_type():
        figure, plots = task_grid(list(runs), label)
        for task, axes in plots.items():
            for name, spent in runs[task].items():
                _draw(axes, name, spent)
            stairs = frontier([spent.middle for spent in runs[task].values()])
            axes.step(*zip(*stairs, strict=True), where="post", color="0.6", linewidth=0.9, zorder=1)
            axes.set(xscale="log", yscale="log", xlabel="training (s)")
            plain_logarithms(axes.xaxis)
            plain_logarithms(axes.yaxis)
            plain_grid(axes)
        legend_below(figure, list(dict.fromkeys(name for models in runs.values() for name in models)), lines=False)
        return figure


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other point beats in both coordinates, from left to right.

    >>> frontier([(1.0, 5.0), (2.0, 6.0), (3.0, 1.0)])
    [(1.0, 5.0), (3.0, 1.0)]
    """
    best, kept = np.inf, []
    for point in sorted(points):
        if point[1] < best:
            best = point[1]
            kept.append(point)
    return kept


def _draw(axes: Axes, name: str, spent: Spent) -> None:
    look = look_of(name)
    seconds, error = spent.middle
    reach = [[error - min(spent.errors)], [max(spent.errors) - error]] if len(spent.errors) > 1 else None
    axes.errorbar(
        seconds, error, yerr=reach, color=look.colour, marker=look.marker,
        markersize=9 if look.marker == "*" else 5.5, linestyle="", elinewidth=1.0, capsize=2.0, label=look.label,
        zorder=2 + look.width,
    )  # fmt: skip
