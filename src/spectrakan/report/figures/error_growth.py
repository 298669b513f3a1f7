"""How errors grow along a rollout."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from spectrakan.report.figures.appearance import blank_figure, house_type
from spectrakan.report.figures.lines import Curves, draw_curves, legend_right, plain_grid, plain_logarithms


def error_against_time(times: Sequence[float], errors: Curves, label: str) -> Figure:
    """One line a model, `(time,)` or `(seeds, time)`: the mean over seeds, with a band from smallest to largest.

    >>> figure = error_against_time([0.1, 0.2], {"fno": [[0.01, 0.02], [0.03, 0.04]]}, "relative L2")
    >>> [round(float(value), 3) for value in figure.axes[0].lines[0].get_ydata()]
    [0.02, 0.03]
    """
    with house_type():
        figure = blank_figure(6.6, 3.3, constrained=True)
        axes = figure.add_subplot()
        lines = draw_curves(axes, times, errors)
        axes.set(xlabel="t", ylabel=label, yscale="log")
        plain_logarithms(axes.yaxis)
        plain_grid(axes)
        legend_right(figure, lines)
        return figure
