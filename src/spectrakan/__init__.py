"""spectrakan learns solution operators of PDEs."""

from spectrakan import errors
from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories, Window

__version__ = "0.1.0"

__all__ = ["FieldSpec", "Grid", "OperatorSignature", "Trajectories", "Window", "__version__", "errors"]
