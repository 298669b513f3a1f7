"""What a trained SpectraKAN has learned, drawn: edge functions of its KAN, spectra of its gates, its attention."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from matplotlib.figure import Figure

from spectrakan.experiments.forecasts import Forecasts
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.kan import KAN
from spectrakan.report.figures.attention import attention_maps
from spectrakan.report.figures.edge_functions import edge_functions, widest_edges
from spectrakan.report.figures.gates import gate_spectra_by_layer
from spectrakan.report.gallery import Plate
from spectrakan.theory.edge_views import edge_views
from spectrakan.theory.parts import token_inputs
from spectrakan.theory.spectra import used_spectra

SECTION = "What SpectraKAN has learned"


def learned_plates(shown: Forecasts) -> Iterator[tuple[Plate, Figure]]:
    """Three figures of the SpectraKAN of a case, as far as its choices have these parts."""
    model = shown.models.get("spectrakan")
    if not isinstance(model, SpectraKAN):
        return
    windows, grid = torch.from_numpy(shown.windows), shown.trajectories.grid
    if model.global_token is not None and isinstance(model.global_token.network, KAN) and len(windows) > 1:
        view = edge_views(model.global_token.network, token_inputs(model, windows, shown.params, grid))[0]
        count = len(widest_edges(view))
        caption = (
            f"{shown.case}: the {count} edge functions of the token's first layer that pass on most, with knots "
            "as ticks and, shaded, the density of what arrives from test samples. Titles are input → output."
        )
        yield (
            Plate(f"{shown.case}-edges", SECTION, caption, f"Small plots of curves. {caption}"),
            edge_functions(view),
        )
    if spectra := used_spectra(model, windows, shown.params, grid):
        caption = (
            f"{shown.case}: power that leaves each mode of each gated spectral layer on test samples, by axis; "
            "titles say the share of each axis."
        )
        drawn = gate_spectra_by_layer(spectra)
        yield Plate(f"{shown.case}-gates", SECTION, caption, f"Small plots, one a layer. {caption}"), drawn
    if model.gml is not None:
        first = None if shown.params is None else shown.params[:1]
        weights = model.attention(windows[:1], first, grid).detach()
        caption = (
            f"{shown.case}: the last input frame of the first test sample and where the token looks: attention times "
            "the number of cells, so that 1 is as much as the mean cell gets."
        )
        drawn = attention_maps(shown.windows[0, -1, ..., 0], weights[0].numpy())
        span = f"Attention goes from {_times(weights.min(), weights)} to {_times(weights.max(), weights)}."
        yield Plate(f"{shown.case}-attention", SECTION, caption, f"{caption} {span}"), drawn


def _times(value: torch.Tensor, weights: torch.Tensor) -> str:
    return f"{float(value) * weights[0, 0].numel():.3g}"
