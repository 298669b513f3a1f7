"""How much data a model needs: error against the number of training samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from spectrakan.report.figures.appearance import house_type
from spectrakan.report.figures.lines import Curves, draw_curves, plain_grid, plain_logarithms
from spectrakan.report.figures.small_multiples import legend_below, task_grid


def error_against_samples(counts: Mapping[str, Sequence[int]], errors: Mapping[str, Curves], label: str) -> Figure:
    """By task: `counts` of samples and each model's errors at them, `(counts,)` or `(seeds, counts)`.

    Both axes are logarithmic, so a power law is a straight line.
    """
    with house_type():
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
