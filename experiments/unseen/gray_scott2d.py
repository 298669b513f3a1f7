"""The Gray-Scott reaction: a substance is fed, another one lives of it, and spots of it grow and divide.

    u_t = D_u Laplace u - u v^2 + F (1 - u)
    v_t = D_v Laplace v + u v^2 - (F + k) v     on (0, 1)^2, periodic

Fourier modes, linear terms exact, exponential time differencing of order 4. Frames begin at t = 200, when the first
spots have formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from experiments.unseen.exponential import modes_at
from experiments.unseen.plane import squared_waves
from spectrakan.config import settings
from spectrakan.fields import FieldSpec, Grid
from spectrakan.numerics.random_field import uniform_draws
from spectrakan.pde.equation import Equation, Positive

SPOTS = 12
"""Places where the second substance is at first."""
_SAMPLES_AT_ONCE = 16


@settings
class GrayScottParameters:
    """Rates of the reaction, and the time step of the solver."""

    feed: Positive = 0.035
    """Rate F at which u is fed and v is washed out."""
    kill: Positive = 0.062
    """Rate k at which v decays besides."""
    diffusivity_u: Positive = 4e-5
    """Diffusivity D_u."""
    diffusivity_v: Positive = 2e-5
    """Diffusivity D_v."""
    longest_step: Positive = 2.0
    """Longest step of time."""


def sample(
    num_samples: int, resolution: tuple[int, ...], parameters: GrayScottParameters, generator: torch.Generator
) -> Tensor:
    """Fields u = 1 - 2 v and v, a sum of bells at random places: `(samples, nx, ny, 2)`.

    Bells have the height 1/4 and widths of 0.03 to 0.06; where they overlap, v is limited to 1/2. The draws do not
    depend on the cells.
    """
    del parameters
    places = uniform_draws((num_samples, SPOTS, 2), 0.0, 1.0, generator)
    widths = uniform_draws((num_samples, SPOTS, 1), 0.03, 0.06, generator)
    bells = []
    for axis, centres in enumerate(Grid.uniform(resolution).coordinates):
        sine = torch.sin(math.pi * (torch.as_tensor(centres) - places[..., axis, None])) / math.pi
        bells.append(torch.exp(-sine.square() / (2 * widths**2)))
    v = torch.einsum("bsx,bsy->bxy", *bells).div(4).clamp(max=0.5)
    return torch.stack([1 - 2 * v, v], dim=-1)


def solve(initial: Tensor, times: Sequence[float], parameters: GrayScottParameters) -> Tensor:
    """Solve a batch: `(batch, nx, ny, 2)` -> `(batch, len(times), nx, ny, 2)`.

    >>> fed = torch.tensor([1.0, 0.0]).expand(1, 8, 8, 2)
    >>> bool((solve(fed, [10.0], GrayScottParameters())[:, 0] - fed).abs().max() < 1e-12)
    True
    """
    return torch.cat([_solve_part(part, times, parameters) for part in initial.split(_SAMPLES_AT_ONCE)])


def _solve_part(initial: Tensor, times: Sequence[float], parameters: GrayScottParameters) -> Tensor:
    """Fields lie as `(batch, field, nx, ny)`, and u is replaced by u - 1, so that no constant term is left."""
    size = initial.shape[1:3]
    fields = initial.double().movedim(-1, 1)
    base = fields.new_tensor([1.0, 0.0]).reshape(2, 1, 1)
    diffusivity = fields.new_tensor([parameters.diffusivity_u, parameters.diffusivity_v]).reshape(2, 1, 1)
    loss = fields.new_tensor([parameters.feed, parameters.feed + parameters.kill]).reshape(2, 1, 1)
    signs = fields.new_tensor([-1.0, 1.0]).reshape(2, 1, 1)

    def rate(modes: Tensor) -> Tensor:
        u, v = torch.fft.irfft2(modes, s=size).unbind(1)
        gained: Tensor = signs * torch.fft.rfft2((1 + u) * v.square())[:, None]
        return gained

    linear = -diffusivity * squared_waves(size) - loss
    found = modes_at(torch.fft.rfft2(fields - base), times, parameters.longest_step, linear, rate)
    return torch.stack([base + torch.fft.irfft2(each, s=size) for each in found], 1).movedim(2, -1)


EQUATION = Equation(
    name="gray_scott2d",
    summary="Gray-Scott reaction in 2D, spots that divide",
    fields=(FieldSpec(name="u"), FieldSpec(name="v")),
    bounds=((0.0, 1.0), (0.0, 1.0)),
    boundary=("periodic", "periodic"),
    resolution=(48, 48),
    times=tuple(200.0 + 20.0 * index for index in range(21)),
    history=5,
    parameters=GrayScottParameters,
    sample=sample,
    solve=solve,
)
