"""Curves of the paper's page: error against cost, samples and time, and energy against wavenumber."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from experiments.sheet import balanced
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.report.figures.appearance import blank_figure, figure_style, look_of
from spectrakan.report.figures.curves import (
    Curves,
    draw_curve,
    draw_curves,
    legend_right,
    plain_grid,
    plain_logarithms,
    runs_of,
)

WIDTH, HEIGHT, LEGEND = 2.3, 1.95, 0.5
CEILING = 100.0
"""Relative errors beyond this are all the same: lost."""
DECADES = 12
"""Energies this many powers of ten below the largest are rounding, not physics."""


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

    The stairs join the models that no other beats in both: a model above them costs more and is less accurate.
    """
    with figure_style():
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


def error_against_samples(counts: Mapping[str, Sequence[int]], errors: Mapping[str, Curves], label: str) -> Figure:
    """By task: `counts` of samples and each model's errors at them, `(counts,)` or `(seeds, counts)`.

    Both axes are logarithmic, so a power law is a straight line.
    """
    with figure_style():
        figure, plots = task_grid(list(errors), label)
        for task, axes in plots.items():
            axes.set(xscale="log", yscale="log", xlabel="samples")
            draw_curves(axes, [float(count) for count in counts[task]], errors[task], marked=True)
            axes.xaxis.set_major_locator(FixedLocator([float(count) for count in counts[task]]))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            plain_logarithms(axes.yaxis)
            plain_grid(axes)
        models = list(dict.fromkeys(name for curves in errors.values() for name in curves))
        legend_below(figure, models, lines=True)
        return figure


def stability_curves(times: Sequence[float], errors: Curves, scored_until: float, label: str) -> Figure:
    """Errors `(time,)` or `(seeds, time)` along a long rollout; up to `scored_until` the ground is grey.

    A cross marks the last finite value of a model that diverges.
    """
    with figure_style():
        figure = blank_figure(6.6, 3.3)
        axes = figure.add_subplot()
        axes.axvspan(float(times[0]), scored_until, color="0.93", linewidth=0, zorder=0)
        lines = draw_curves(axes, times, errors)
        axes.set(xlabel="t", ylabel=label, yscale="log")
        low, high = axes.get_ylim()
        axes.set_ylim(low, min(high, CEILING))
        axes.text(
            (float(times[0]) + scored_until) / 2, 1.01, "scored", transform=axes.get_xaxis_transform(),
            ha="center", va="bottom", fontsize=7, color="0.35",
        )  # fmt: skip
        plain_logarithms(axes.yaxis)
        plain_grid(axes)
        legend_right(figure, lines)
        return figure


def energy_by_wavenumber(truth: npt.ArrayLike, predictions: Mapping[str, npt.ArrayLike], label: str) -> Figure:
    """Spectra `(shells,)` from wavenumber 0 on, or `(seeds, shells)` for a model: above E(k), below E(k) / truth.

    Wavenumber 0 is left out of the logarithmic axis.
    """
    known = np.asarray(truth, dtype=np.float64)
    if known.ndim != 1 or len(known) < 3:
        raise ShapeError(f"a spectrum needs one number for each of 3 shells or more, got {known.shape}")
    waves = [float(k) for k in range(1, len(known))]
    with figure_style():
        figure = blank_figure(6.6, 4.3)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        lines = {}
        for name, values in predictions.items():
            runs = runs_of(values, len(known), name)[:, 1:]
            lines[name] = draw_curve(above, waves, runs, look_of(name), marked=False)
            draw_curve(below, waves, runs / known[1:], look_of(name), marked=False)
        (line,) = above.plot(waves, known[1:], color="black", linewidth=1.6, dashes=(4, 2), label="truth", zorder=7)
        below.axhline(1.0, color="black", linewidth=1.2, dashes=(4, 2), zorder=7)
        above.set(xscale="log", yscale="log", ylabel=label)
        below.set(yscale="log", xlabel="wavenumber k", ylabel="ratio to truth")
        _keep_physics(above, below, known[1:])
        for axes in (above, below):
            plain_logarithms(axes.yaxis)
            plain_grid(axes)
        plain_logarithms(below.xaxis)
        legend_right(figure, {"truth": line, **lines})
        return figure


def _keep_physics(above: Axes, below: Axes, known: npt.NDArray[np.float64]) -> None:
    low, high = above.get_ylim()
    above.set_ylim(max(low, float(known.max()) * 10.0**-DECADES), high)
    small, large = below.get_ylim()
    below.set_ylim(max(small, 1e-3), min(large, 1e3))


def task_grid(tasks: Sequence[str], label: str, most_columns: int = 3) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one plot for each task, under its name; `label` stands at the left of each row."""
    if not tasks:
        raise ConfigError("there is no task to draw; give at least one")
    columns = min(len(tasks), most_columns)
    rows = -(-len(tasks) // columns)
    # Never narrower than its legend.
    figure = blank_figure(max(5.4, WIDTH * columns), HEIGHT * rows + LEGEND)
    plots = {}
    for number, task in enumerate(tasks, start=1):
        plots[task] = figure.add_subplot(rows, columns, number)
        plots[task].set_title(task, fontweight="bold")
        if number % columns == 1 or columns == 1:
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
