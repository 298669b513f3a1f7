"""The nouns of the package: grids, fields, signatures, trajectories and windows."""

from spectrakan.fields.grid import BOUNDARIES, Boundary, Grid
from spectrakan.fields.grid_part import GridPart, SpaceGroup
from spectrakan.fields.signature import OperatorSignature, Window
from spectrakan.fields.trajectories import Array, FieldSpec, Progress, Source, Trajectories, blocks
