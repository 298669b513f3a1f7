"""The nouns of the package: grids, fields, signatures, trajectories and windows."""

from spectrakan.fields.grid import BOUNDARIES, Boundary, Grid
from spectrakan.fields.signature import OperatorSignature, Window
from spectrakan.fields.trajectories import Array, FieldSpec, Source, Trajectories, blocks

__all__ = [
    "BOUNDARIES",
    "Array",
    "Boundary",
    "FieldSpec",
    "Grid",
    "OperatorSignature",
    "Source",
    "Trajectories",
    "Window",
    "blocks",
]
