"""Energy against wavenumber: which scales a prediction keeps, smooths away or makes up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import blank_figure, house_type, look_of
from spectrakan.report.figures.lines import draw_curve, legend_right, plain_grid, plain_logarithms, runs_of

DECADES = 12
"""Energies this many powers of ten below the largest are rounding, not physics."""


def energy_by_wavenumber(truth: npt.ArrayLike, predictions: Mapping[str, npt.ArrayLike], label: str) -> Figure:
    """Spectra `(shells,)` from wavenumber 0 on, or `(seeds, shells)` for a model: above E(k), below E(k) / truth.

    Wavenumber 0 has no place on a logarithmic axis and is left out.
    """
    known = np.asarray(truth, dtype=np.float64)
    if known.ndim != 1 or len(known) < 3:
        raise ShapeError(f"a spectrum needs one number for each of 3 shells or more, got {known.shape}")
    waves = [float(k) for k in range(1, len(known))]
    with house_type():
        figure = blank_figure(6.6, 4.3, constrained=True)
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
