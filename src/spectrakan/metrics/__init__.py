"""Scores of predicted fields: the PDEBench metrics, exactly or as published, and the formulas below them."""

from spectrakan.metrics.frame_errors import anomaly_r2, relative_error
from spectrakan.metrics.scores import METRICS, Scores
from spectrakan.metrics.spectral import energy_spectrum
from spectrakan.metrics.suite import CONVENTIONS, MetricAccumulator, evaluate_fields, score_fields
