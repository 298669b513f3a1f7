"""Curves of many models: the mean over seeds as a line, the smallest to the largest as a band."""

from __future__ import annotations

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
from spectrakan.report.figures.appearance import Look, look_of

Curves = Mapping[str, npt.ArrayLike]
"""By model: `(x,)`, or `(seeds, x)` for several runs."""


def runs_of(values: npt.ArrayLike, count: int, name: str) -> npt.NDArray[np.float64]:
    """A model's curves as `(seeds, x)`, with what is not finite as NaN."""
    runs = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if runs.ndim != 2 or runs.shape[1] != count:
        raise ShapeError(f"'{name}' needs {count} numbers, or (seeds, {count}), got {np.shape(values)}")
    return np.where(np.isfinite(runs), runs, np.nan)


def draw_curve(axes: Axes, x: Sequence[float], runs: npt.NDArray[np.float64], look: Look, *, marked: bool) -> Line2D:
    """One model's line and band; a cross where a run stops giving numbers."""
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
        place = int(known[-1])
        axes.plot(x[place], middle[place], "x", color=look.colour, markersize=7, markeredgewidth=1.6, zorder=6)
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
    # Within a factor of five, powers of ten and their simple multiples are too far apart to show anything.
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


def legend_right(figure: Figure, lines: Mapping[str, Line2D], **options: Any) -> None:
    """The legend outside the axes, where it can hide no curve."""
    handles = list(lines.values())
    figure.legend(
        handles, [str(line.get_label()) for line in handles], loc="outside right upper", frameon=False, **options
    )
