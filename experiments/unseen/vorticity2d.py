"""Vorticity of an incompressible flow in 2D under a steady force, as in FNO's Navier-Stokes set.

    w_t + u . grad w = nu Laplace w + f,     u = (psi_y, -psi_x),     -Laplace psi = w     on (0, 1)^2, periodic
    f(x, y) = 0.1 (sin 2 pi (x + y) + cos 2 pi (x + y))

Dealiased Fourier products in the form u . grad w = (d_xx - d_yy)(u_x u_y) + d_xy (u_y^2 - u_x^2), viscosity exact,
exponential time differencing of order 4. Frames begin at t = 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from experiments.unseen.exponential import modes_at
from experiments.unseen.plane import dealiased, squared_waves, wave_vectors
from spectrakan.config import settings
from spectrakan.fields import FieldSpec, Grid
from spectrakan.pde.equation import Equation, NotNegative, Positive

HIGHEST = 12
"""Highest wave number of the start along an axis; its amplitude is 0.5 % of that of the lowest."""
_SAMPLES_AT_ONCE = 16


@settings
class VorticityParameters:
    """Viscosity, force, and the time step of the solver."""

    viscosity: NotNegative = 5e-4
    """Kinematic viscosity nu; 64 cells an axis resolve it."""
    force: float = 0.1
    """Amplitude of the force f."""
    longest_step: Positive = 0.025
    """Longest step of time; above 64 cells an axis it shrinks as their width."""


def sample(
    num_samples: int, resolution: tuple[int, ...], parameters: VorticityParameters, generator: torch.Generator
) -> Tensor:
    """Normal random fields of covariance 7^3 (-Laplace + 49)^{-5/2}, `(num_samples, nx, ny, 1)`.

    The draws do not depend on the cells: one seed gives the same functions at every resolution.
    """
    del parameters
    count = 2 * HIGHEST + 1
    order = torch.arange(-HIGHEST, HIGHEST + 1, dtype=torch.float64)
    wave = 2 * math.pi * order
    amplitude = 7**1.5 * (wave[:, None] ** 2 + wave**2 + 49) ** -1.25
    amplitude[HIGHEST, HIGHEST] = 0.0  # no mean
    drawn = torch.randn(num_samples, 2, count, count, generator=generator, dtype=torch.float64)
    coefficients = torch.complex(*(amplitude * drawn).unbind(1))
    # The real part of the sum over all k has each wave twice, from k and -k.
    waves = [
        torch.exp(1j * wave * torch.as_tensor(centres)[:, None]) for centres in Grid.uniform(resolution).coordinates
    ]
    return torch.einsum("bkl,xk,yl->bxy", coefficients, *waves).real[..., None]


def solve(initial: Tensor, times: Sequence[float], parameters: VorticityParameters) -> Tensor:
    """Solve a batch: `(batch, nx, ny, 1)` -> `(batch, len(times), nx, ny, 1)`; the mean of w stays.

    >>> still = solve(torch.zeros(1, 8, 8, 1), [1.0], VorticityParameters(force=0.0))
    >>> float(still.abs().max())
    0.0
    """
    return torch.cat([_solve_part(part, times, parameters) for part in initial.split(_SAMPLES_AT_ONCE)])


def _solve_part(initial: Tensor, times: Sequence[float], parameters: VorticityParameters) -> Tensor:
    size = initial.shape[1:3]
    force = parameters.force * torch.fft.rfft2(forcing(size))
    transport = Transport(size)

    def rate(modes: Tensor) -> Tensor:
        gained: Tensor = force - transport(modes)
        return gained

    modes = torch.fft.rfft2(initial[..., 0].double())
    longest = parameters.longest_step * min(1.0, 64 / max(size))
    found = modes_at(modes, times, longest, -parameters.viscosity * squared_waves(size), rate)
    return torch.stack([torch.fft.irfft2(each, s=size) for each in found], 1)[..., None]


def forcing(size: Sequence[int]) -> Tensor:
    """The force f of amplitude 1 at the cells, `(nx, ny)`."""
    x, y = (torch.as_tensor(centres) for centres in Grid.uniform(tuple(size)).coordinates)
    angle = 2 * math.pi * (x[:, None] + y)
    return angle.sin() + angle.cos()


class Transport:
    """Modes of u . grad w from modes of w."""

    def __init__(self, size: Sequence[int]) -> None:
        x, y = wave_vectors(size)
        self.size, kept = tuple(size), dealiased(size)
        inverse = 1 / squared_waves(size).clamp_min(1e-9)  # the mean of w moves nothing
        inverse[0, 0] = 0.0
        zero = torch.zeros_like(inverse)
        # u_x = d_y psi, u_y = -d_x psi; both transforms in one call.
        self.velocity = torch.complex(zero, torch.stack([y * inverse, -x * inverse])) * kept
        self.shear, self.cross = kept * (y**2 - x**2), -kept * x * y

    def __call__(self, modes: Tensor) -> Tensor:
        """`(batch, nx, ny / 2 + 1)` -> the same."""
        ux, uy = torch.fft.irfft2(self.velocity * modes[:, None], s=self.size).unbind(1)
        products = torch.fft.rfft2(torch.stack([ux * uy, uy.square() - ux.square()], 1))
        found: Tensor = self.shear * products[:, 0] + self.cross * products[:, 1]
        return found


EQUATION = Equation(
    name="vorticity2d",
    summary="Vorticity of a forced flow in 2D",
    fields=(FieldSpec(name="vorticity"),),
    bounds=((0.0, 1.0), (0.0, 1.0)),
    boundary=("periodic", "periodic"),
    resolution=(64, 64),
    times=tuple(10.0 + index for index in range(21)),
    history=5,
    parameters=VorticityParameters,
    sample=sample,
    solve=solve,
)
