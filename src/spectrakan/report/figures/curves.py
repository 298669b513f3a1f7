"""Curves of models and runs: errors against time, losses against epochs, bounds; seeds as a mean with a band."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import Look, blank_figure, figure_style, look_of

Curves = Mapping[str, npt.ArrayLike]
"""By model: `(x,)`, or `(seeds, x)` for several runs."""


def error_against_time(times: Sequence[float], errors: Curves, label: str) -> Figure:
    """One line a model, `(time,)` or `(seeds, time)`: the mean over seeds, with a band from smallest to largest.

    >>> figure = error_against_time([0.1, 0.2], {"fno": [[0.01, 0.02], [0.03, 0.04]]}, "relative L2")
    >>> [round(float(value), 3) for value in figure.axes[0].lines[0].get_ydata()]
    [0.02, 0.03]
    """
    with figure_style():
        figure = blank_figure(6.6, 3.3)
        axes = figure.add_subplot()
        lines = draw_curves(axes, times, errors)
        axes.set(xlabel="t", ylabel=label, yscale="log")
        plain_logarithms(axes.yaxis)
        plain_grid(axes)
        legend_right(figure, lines)
        return figure


def loss_curves(logs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Training loss (left) and validation error (right) against the epoch, one line a run.

    `logs` are the lines of each run's `log.jsonl`: of its events "epoch", `loss` and `validation` are drawn,
    what is missing or not finite is left out. A point marks the smallest validation error.

    >>> log = [{"event": "epoch", "epoch": epoch, "step": 9, "loss": 1 / (epoch + 1)} for epoch in range(3)]
    >>> figure = loss_curves({"fno": log})
    >>> [round(float(value), 2) for value in figure.axes[0].lines[0].get_ydata()]
    [1.0, 0.5, 0.33]
    """
    with figure_style():
        figure = blank_figure(6.6, 2.8)
        lines: dict[str, Line2D] = {}
        for axes, key in zip(figure.subplots(1, 2), ("loss", "validation"), strict=True):
            for name, log in logs.items():
                epochs, values = _epochs(log, key)
                look = look_of(name)
                (line,) = axes.plot(epochs, values, color=look.colour, linestyle=look.dash, label=look.label)
                lines.setdefault(name, line)
                if key == "validation" and np.isfinite(values).any():
                    best = int(np.nanargmin(values))
                    axes.plot(epochs[best], values[best], "o", color=look.colour, markersize=4)
            axes.set(xlabel="epoch", ylabel={"loss": "training loss", "validation": "validation error"}[key])
            if any(np.isfinite(np.asarray(line.get_ydata(), dtype=np.float64)).any() for line in axes.lines):
                axes.set_yscale("log")
                plain_logarithms(axes.yaxis)
            plain_grid(axes)
        legend_right(figure, lines)
        return figure


def bound_against_radius(radii: Sequence[float], bounds: Sequence[float], attacked: Sequence[float]) -> Figure:
    """Largest change of a prediction against the perturbation's size: what is proved, and the worst that was found.

    A bound that is not finite is left out.

    >>> figure = bound_against_radius([0.01, 0.1], [0.04, float("inf")], [0.013, 0.2])
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['proved bound', 'worst found']
    """
    with figure_style():
        figure = blank_figure(5.2, 3.3)
        axes = figure.add_subplot()
        lines: dict[str, Line2D] = {}
        for label, values, look in (("proved bound", bounds, "o-"), ("worst found", attacked, "s--")):
            known = np.where(np.isfinite(values) & (np.asarray(values) > 0), values, np.nan)
            (lines[label],) = axes.plot(radii, known, look, label=label, markersize=4.5)
        axes.set(xscale="log", yscale="log")
        axes.set(xlabel="largest perturbation of the input", ylabel="largest change of the prediction")
        for axis in (axes.xaxis, axes.yaxis):
            plain_logarithms(axis)
        plain_grid(axes)
        legend_right(figure, lines)
        return figure


def _epochs(log: Sequence[Mapping[str, Any]], key: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Epochs, counted from 1, and the positive values of a key at them; NaN for others."""
    rows = [(line["epoch"] + 1, line.get(key)) for line in log if line.get("event") == "epoch"]
    numbers = [float(value) if isinstance(value, int | float) and value > 0 else np.nan for _, value in rows]
    return np.asarray([epoch for epoch, _ in rows], dtype=np.float64), np.asarray(numbers, dtype=np.float64)


def runs_of(values: npt.ArrayLike, count: int, name: str) -> npt.NDArray[np.float64]:
    """A model's curves as `(seeds, x)`, with what is not finite as NaN."""
    runs = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if runs.ndim != 2 or runs.shape[1] != count:
        raise ShapeError(f"'{name}' needs {count} numbers, or (seeds, {count}), got {np.shape(values)}")
    return np.where(np.isfinite(runs), runs, np.nan)


def draw_curve(axes: Axes, x: Sequence[float], runs: npt.NDArray[np.float64], look: Look, *, marked: bool) -> Line2D:
    """One model's line and band; a cross at the last finite value of a run that diverges."""
    middle = runs.mean(axis=0)
    marker = look.marker if marked else ""
    (line,) = axes.plot(
        x, middle, color=look.colour, linestyle=look.dash, linewidth=look.width,
        marker=marker, markersize=7 if look.marker == "*" else 4.5, label=look.label, zorder=2 + look.width,
    )  # fmt: skip
    if len(runs) > 1:
        whole = np.isfinite(runs).all(axis=0)
        low, high = np.where(whole, runs, 0.0).min(axis=0), np.where(whole, runs, 0.0).max(axis=0)
        axes.fill_between(x, low, high, where=whole.tolist(), color=look.colour, alpha=0.18, linewidth=0)
    known = np.flatnonzero(np.isfinite(middle))
    if len(known) and known[-1] + 1 < len(middle):
        last = int(known[-1])
        axes.plot(x[last], middle[last], "x", color=look.colour, markersize=7, markeredgewidth=1.6, zorder=6)
    return line


def draw_curves(axes: Axes, x: Sequence[float], curves: Curves, *, marked: bool = False) -> dict[str, Line2D]:
    """All models' curves; the lines by model, the one that ends highest first, as a legend should list them."""
    runs = {name: runs_of(values, len(x), name) for name, values in curves.items()}
    lines = {name: draw_curve(axes, x, each, look_of(name), marked=marked) for name, each in runs.items()}

    def end(name: str) -> float:
        last = float(runs[name][:, -1].mean())
        return last if np.isfinite(last) else np.inf

    return {name: lines[name] for name in sorted(lines, key=end, reverse=True)}


def plain_logarithms(axis: Axis) -> None:
    """A logarithmic axis with numbers such as 0.02 and 50, few enough to be read."""
    low, high = sorted(axis.get_view_interval())
    decades = np.log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < 1.6 else (1.0, 3.0) if decades < 2.6 else (1.0,)
    # Within a factor of five, powers of ten and their simple multiples are too far apart.
    axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]) if decades < 0.7 else LogLocator(subs=subs))
    axis.set_major_formatter(lambda value, _: _short(value))
    axis.set_minor_locator(NullLocator())


def _short(value: float) -> str:
    """The number in a few characters."""
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    digits, _, power = f"{value:.0e}".partition("e")
    return rf"$10^{{{int(power)}}}$" if digits == "1" else rf"${digits}\times 10^{{{int(power)}}}$"


def plain_grid(axes: Axes) -> None:
    """Faint lines behind the curves and no box above and at the right of them."""
    axes.grid(which="major", color="0.88", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def legend_right(figure: Figure, lines: Mapping[str, Line2D]) -> None:
    """The legend outside the axes, where it can hide no curve."""
    figure.legend(handles=list(lines.values()), loc="outside right upper", frameon=False)
