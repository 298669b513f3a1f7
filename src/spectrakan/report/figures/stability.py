"""Rollouts far past the horizon that a task scores: who stays bounded, who drifts, who explodes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from spectrakan.report.figures.appearance import blank_figure, house_type
from spectrakan.report.figures.lines import Curves, draw_curves, legend_right, plain_grid, plain_logarithms

CEILING = 100.0
"""Relative errors beyond this are all the same: lost."""


def stability_curves(times: Sequence[float], errors: Curves, scored_until: float, label: str) -> Figure:
    """Errors `(time,)` or `(seeds, time)` along a long rollout; up to `scored_until` the ground is grey.

    A cross marks the last number of a model that goes on to give none.
    """
    with house_type():
        figure = blank_figure(6.6, 3.3, constrained=True)
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
