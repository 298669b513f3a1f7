"""Questions about a trained operator, answered with numbers."""

from spectrakan.evaluation.bands import Bands, BandWarning, Coverage, calibrate_bands, residual_scale
from spectrakan.evaluation.evaluate import evaluate

__all__ = ["BandWarning", "Bands", "Coverage", "calibrate_bands", "evaluate", "residual_scale"]
