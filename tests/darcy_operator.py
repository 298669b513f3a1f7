"""-div(a grad u) written out by fluxes, which solutions of the Darcy solver are checked with."""

from __future__ import annotations

import torch
from torch import Tensor

from spectrakan.pde.darcy2d import DarcyParameters, face_conductances


def darcy_operator(pressure: Tensor, coefficient: Tensor, parameters: DarcyParameters) -> Tensor:
    """-div(a grad u) on the `(B, nx, ny)` cells of the unit square."""
    across, along = face_conductances(coefficient, parameters)
    outside = torch.nn.functional.pad(pressure, (1, 1, 1, 1))
    flux_x = across * outside[:, :, 1:-1].diff(dim=1)
    flux_y = along * outside[:, 1:-1, :].diff(dim=2)
    return -(flux_x.diff(dim=1) + flux_y.diff(dim=2))
