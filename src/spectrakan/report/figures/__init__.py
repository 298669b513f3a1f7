"""Figures from arrays: each function returns a matplotlib `Figure`, which notebooks display and `save_figure` writes.

Nothing here uses pyplot or changes matplotlib's settings.
"""

from spectrakan.report.figures.appearance import figure_bytes, save_figure
from spectrakan.report.figures.curves import bound_against_radius, error_against_time, loss_curves
from spectrakan.report.figures.maps import field_maps
