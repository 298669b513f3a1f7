"""Spectra of the gates: which frequencies each layer lets through, along which axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import blank_figure, house_type
from spectrakan.report.figures.lines import plain_grid
from spectrakan.theory.spectra import GateSpectrum, axis_shares

COLUMNS = 4


def gate_spectra_by_layer(spectra: Sequence[GateSpectrum]) -> Figure:
    """One panel a layer: strength (power, where data were seen) over frequency, one line an axis.

    The title says how much of the layer goes through each axis.
    """
    if not spectra:
        raise ShapeError("there must be at least one spectrum to draw, got none")
    shares = axis_shares(spectra)
    columns = min(COLUMNS, len(shares))
    rows = math.ceil(len(shares) / columns)
    with house_type():
        figure = blank_figure(2.4 * columns, 2.0 * rows, constrained=True)
        for place, ((branch, layer), parts) in enumerate(shares.items(), start=1):
            axes = figure.add_subplot(rows, columns, place)
            for spectrum in spectra:
                if (spectrum.branch, spectrum.layer) == (branch, layer):
                    amount = spectrum.strength if spectrum.power is None else spectrum.power
                    axes.plot(spectrum.frequencies.numpy(), amount.numpy(), marker=".", label=f"axis {spectrum.axis}")
            told = ", ".join(f"{float(part):.0%}" for part in parts)
            axes.set_title(f"{branch} {layer}: {told}")
            axes.set(xlabel="cycles per domain", ylabel="strength" if spectra[0].power is None else "power")
            axes.legend(frameon=False)
            plain_grid(axes)
        return figure
