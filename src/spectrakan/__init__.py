"""spectrakan learns solution operators of PDEs."""

from spectrakan import errors
from spectrakan.data.generate import generate, solve
from spectrakan.data.load import load_dataset
from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories, Window

__version__ = "0.1.0"

__all__ = [
    "FieldSpec",
    "Grid",
    "OperatorSignature",
    "Trajectories",
    "Window",
    "__version__",
    "errors",
    "generate",
    "load_dataset",
    "solve",
]
