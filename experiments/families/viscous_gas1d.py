"""Compressible Navier-Stokes in 1D (`cns1d`) with viscosities that differ by sample, drawn by their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from spectrakan.config import settings
from spectrakan.pde import cns1d
from spectrakan.pde.equation import Equation, with_values


@settings
class ViscosityParameters:
    """Both viscosities; tensors `(batch,)` where samples differ."""

    log_eta: float = -2.0
    """log10 of the shear viscosity."""
    log_zeta: float = -2.0
    """log10 of the bulk viscosity."""


def sample(
    num_samples: int, resolution: tuple[int, ...], parameters: ViscosityParameters, generator: torch.Generator
) -> Tensor:
    """The initial states of `cns1d`, the same for all parameters."""
    del parameters
    return cns1d.sample(num_samples, resolution, cns1d.CNS1DParameters(), generator)


def solve(initial: Tensor, times: Sequence[float], parameters: ViscosityParameters) -> Tensor:
    """The solver of `cns1d`: `(batch, cells, 3)` -> `(batch, len(times), cells, 3)`."""
    viscosities = {"eta": 10**parameters.log_eta, "zeta": 10**parameters.log_zeta}
    return cns1d.solve(initial, times, with_values(cns1d.CNS1DParameters(), viscosities))


EQUATION: Equation = replace(
    cns1d.EQUATION,
    name="viscous_gas1d",
    summary="Compressible Navier-Stokes in 1D, both viscosities varied",
    history=1,
    parameters=ViscosityParameters,
    sample=sample,
    solve=solve,
    batched_parameters=("log_eta", "log_zeta"),
)
