"""Evaluation of a trained operator: scores, resolutions, stability, error bands."""

from spectrakan.evaluation.bands import (
    Bands,
    band_coverage,
    calibrate_bands,
    calibrated,
    check_bands,
    residual_scale,
)
from spectrakan.evaluation.batches import EvaluationSettings, Share
from spectrakan.evaluation.evaluate import check_evaluation, evaluate, require_capability
from spectrakan.evaluation.stability import check_stability, stability
