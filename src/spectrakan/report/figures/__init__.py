"""Figures from arrays, one file a kind; each function gives a matplotlib `Figure` that `export` writes."""

from spectrakan.report.figures.cost import accuracy_against_seconds
from spectrakan.report.figures.data_efficiency import error_against_samples
from spectrakan.report.figures.error_growth import error_against_time
from spectrakan.report.figures.export import figure_bytes, save_figure
from spectrakan.report.figures.field_rows import fields_by_row
from spectrakan.report.figures.globe import globe_maps
from spectrakan.report.figures.maps import field_maps
from spectrakan.report.figures.sample import Sample
from spectrakan.report.figures.space_time import space_time_maps
from spectrakan.report.figures.spectrum import energy_by_wavenumber
from spectrakan.report.figures.stability import stability_curves
from spectrakan.report.figures.time_strips import time_strips

__all__ = [
    "Sample",
    "accuracy_against_seconds",
    "energy_by_wavenumber",
    "error_against_samples",
    "error_against_time",
    "field_maps",
    "fields_by_row",
    "figure_bytes",
    "globe_maps",
    "save_figure",
    "space_time_maps",
    "stability_curves",
    "time_strips",
]
