"""Questions about a trained operator, answered with numbers."""

from spectrakan.evaluation.band_coverage import band_coverage, calibrated
from spectrakan.evaluation.bands import Bands, BandWarning, Coverage, calibrate_bands, residual_scale
from spectrakan.evaluation.cost import rollout_cost
from spectrakan.evaluation.evaluate import evaluate
from spectrakan.evaluation.profile import profile
from spectrakan.evaluation.resolution import resolution_scores
from spectrakan.evaluation.speed_up import speed_up
from spectrakan.evaluation.stability import stability

__all__ = [
    "BandWarning",
    "Bands",
    "Coverage",
    "band_coverage",
    "calibrate_bands",
    "calibrated",
    "evaluate",
    "profile",
    "residual_scale",
    "resolution_scores",
    "rollout_cost",
    "speed_up",
    "stability",
]
