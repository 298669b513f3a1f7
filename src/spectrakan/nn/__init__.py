"""Parts with weights, from which operators are built."""

from spectrakan.nn.kan import KAN, KANLayer
from spectrakan.nn.normalizer import Normalizer

__all__ = ["KAN", "KANLayer", "Normalizer"]
