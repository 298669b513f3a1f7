"""Figures of what a SpectraKAN has learned: edge functions of its KAN, spectra of its gates, its attention."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.forecasts import Forecasts
from experiments.gallery import Plate
from experiments.gate_spectra import GateSpectrum, axis_shares, used_spectra
from spectrakan.errors import ShapeError
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.kan import KAN
from spectrakan.report.figures.appearance import SEQUENTIAL, blank_figure, figure_style
from spectrakan.report.figures.curves import plain_grid
from spectrakan.report.figures.maps import Values
from spectrakan.theory.parts import LayerView, edge_views, token_inputs

SECTION = "What SpectraKAN has learned"
MOST_EDGES = 16
COLUMNS = 4


def learned_plates(shown: Forecasts) -> Iterator[tuple[Plate, Figure]]:
    """Three figures of the SpectraKAN of a case, as far as it has these parts."""
    model = shown.models.get("spectrakan")
    if not isinstance(model, SpectraKAN):
        return
    windows, params, grid = shown.window.inputs, shown.window.params, shown.trajectories.grid
    if model.global_token is not None and isinstance(model.global_token.network, KAN) and len(windows) > 1:
        view = edge_views(model.global_token.network, token_inputs(model, windows, params, grid))[0]
        count = len(widest_edges(view))
        caption = (
            f"{shown.case}: the {count} edge functions of the token's first layer of largest spread, with knots "
            "as ticks and, shaded, the density of their inputs on test samples. Titles are input → output."
        )
        yield (
            Plate(f"{shown.case}-edges", SECTION, caption, f"Small plots of curves. {caption}"),
            edge_functions(view),
        )
    if spectra := used_spectra(model, windows, params, grid):
        caption = (
            f"{shown.case}: power that leaves each mode of each gated spectral layer on test samples, by axis; "
            "titles show the share of each axis."
        )
        drawn = gate_spectra_by_layer(spectra)
        yield Plate(f"{shown.case}-gates", SECTION, caption, f"Small plots, one a layer. {caption}"), drawn
    if model.gml is not None:
        first = None if params is None else params[:1]
        weights = model.attention(windows[:1], first, grid).detach()
        caption = (
            f"{shown.case}: the last input frame of the first test sample and the attention of the token, times "
            "the number of cells, so that 1 is the attention of the mean cell."
        )
        drawn = attention_maps(windows[0, -1, ..., 0].numpy(), weights[0].numpy())
        span = f"Attention goes from {_times(weights.min(), weights)} to {_times(weights.max(), weights)}."
        yield Plate(f"{shown.case}-attention", SECTION, caption, f"{caption} {span}"), drawn


def _times(value: torch.Tensor, weights: torch.Tensor) -> str:
    return f"{float(value) * weights[0, 0].numel():.3g}"


def edge_functions(view: LayerView, edges: Sequence[tuple[int, int]] | None = None) -> Figure:
    """Edge functions with their knots as ticks below and the density of the data as a shade.

    `edges` are pairs (output, input); without them the widest are drawn.
    """
    chosen = widest_edges(view) if edges is None else list(edges)
    if not chosen:
        raise ShapeError("there must be at least one edge to draw, got none")
    columns = min(COLUMNS, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    with figure_style():
        figure = blank_figure(2.2 * columns, 1.8 * rows)
        for number, edge in enumerate(chosen, start=1):
            _draw(figure.add_subplot(rows, columns, number), view, edge)
        return figure


def widest_edges(view: LayerView, most: int = MOST_EDGES) -> list[tuple[int, int]]:
    """The edges (output, input) with the largest spread over the data, widest first."""
    spread = view.spread()
    order = spread.flatten().argsort(descending=True, stable=True)[:most]
    return [divmod(int(index), spread.shape[1]) for index in order]


def _draw(axes: Axes, view: LayerView, edge: tuple[int, int]) -> None:
    out, into = edge
    points, knots = view.points[into].numpy(), view.knots[into].numpy()
    counts, sides = np.histogram(view.inputs[into].numpy(), bins=40, range=(points[0], points[-1]))
    shade = axes.twinx()
    shade.stairs(counts / counts.sum(), sides, fill=True, color="0.88")
    shade.set_yticks([])
    # The curve lies above the shade although its axes were made first.
    axes.set_zorder(shade.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(points, view.curves[out, into].numpy(), color="C0")
    axes.plot(knots, np.zeros(len(knots)), "|k", transform=axes.get_xaxis_transform(), clip_on=False)
    axes.set_title(f"{into} → {out}")


def gate_spectra_by_layer(spectra: Sequence[GateSpectrum]) -> Figure:
    """One panel a layer: strength (power, where data were seen) over frequency, one line an axis.

    The title shows the share of each axis in the layer.
    """
    if not spectra:
        raise ShapeError("there must be at least one spectrum to draw, got none")
    shares = axis_shares(spectra)
    columns = min(COLUMNS, len(shares))
    rows = math.ceil(len(shares) / columns)
    with figure_style():
        figure = blank_figure(2.4 * columns, 2.0 * rows)
        for number, ((branch, layer), parts) in enumerate(shares.items(), start=1):
            axes = figure.add_subplot(rows, columns, number)
            for spectrum in spectra:
                if (spectrum.branch, spectrum.layer) == (branch, layer):
                    amount = spectrum.strength if spectrum.power is None else spectrum.power
                    axes.plot(spectrum.frequencies.numpy(), amount.numpy(), marker=".", label=f"axis {spectrum.axis}")
            shares_text = ", ".join(f"{float(part):.0%}" for part in parts)
            axes.set_title(f"{branch} {layer}: {shares_text}")
            axes.set(xlabel="cycles per domain", ylabel="strength" if spectra[0].power is None else "power")
            axes.legend(frameon=False)
            plain_grid(axes)
        return figure


def attention_maps(field: Values, weights: Values) -> Figure:
    """A field `(nx,)` or `(nx, ny)`, and the attention of each head `(heads, *space)` times the number of cells.

    There 1 is the attention of the mean cell. All heads share one colour scale.
    """
    if weights.shape[1:] != field.shape or field.ndim not in (1, 2):
        raise ShapeError(
            f"expected weights of shape (heads, {', '.join(map(str, field.shape))}), got {weights.shape}"
        )
    relative = weights * field.size
    panels = {"field": (field, field), **{f"attention {i}": (head, relative) for i, head in enumerate(relative)}}
    with figure_style():
        figure = blank_figure(2.6 * len(panels), 2.4)
        for number, (title, (values, scale)) in enumerate(panels.items(), start=1):
            axes = figure.add_subplot(1, len(panels), number)
            axes.set_title(title)
            low, high = float(scale.min()), float(scale.max())
            if values.ndim == 1:
                axes.plot(values)
                axes.set_ylim(low, high)
                continue
            # The first axis of an array is x, to the right; images have it downwards.
            image = axes.imshow(values.T, origin="lower", vmin=low, vmax=high, cmap=SEQUENTIAL)
            axes.set_xticks([])
            axes.set_yticks([])
            figure.colorbar(image, ax=axes, shrink=0.8)
        return figure
