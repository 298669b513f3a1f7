"""Whole operators, one file each."""

from spectrakan.models.catalog import MODELS, VARIANTS, build_model
from spectrakan.models.operator import Operator
from spectrakan.models.pretrained import from_pretrained

__all__ = ["MODELS", "VARIANTS", "Operator", "build_model", "from_pretrained"]
