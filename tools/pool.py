"""The pool of the shipped model and of the page: drops that fall into moving water, and the means that a model sees.

    rho <- rho + d - mean(d),     v <- rho_old v / rho,     d(x) = sum over drops of h exp(-|x - c|²/w)

A drop brings no horizontal momentum, and its water is taken evenly from the pool, so the mean depth stays. The scheme
of `droplet2d` has a viscosity that grows with the cell, so the solver always runs on `POOL_CELLS`² cells, and a
coarser state is the mean of its mass and momenta over larger cells. Shapes: states `(B, n, n, 3)` = rho and
velocities, drops `(B, count, 4)` = centre x, y in [0, 1], height h and width w.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spectrakan.numerics.resample import block_mean
from spectrakan.serve.scenes import POOL_CELLS

HIGHEST = 4.0
"""A drop is lowered so that the water under its centre stays below this: the solver's step allows no faster waves."""


def still(batch: int, level: float | Tensor = 1.0, cells: int = POOL_CELLS) -> Tensor:
    """Water at rest."""
    state = torch.zeros(batch, cells, cells, 3, dtype=torch.float64)
    state[..., 0] = torch.as_tensor(level, dtype=torch.float64).reshape(-1, 1, 1)
    return state


def add_drops(state: Tensor, drops: Tensor) -> Tensor:
    """The state after drops have fallen in, one after the other.

    >>> wet = add_drops(still(1), torch.tensor([[[0.5, 0.5, 1.0, 0.01]]]))
    >>> round(float(wet[..., 0].max()), 2), round(float(wet[..., 0].mean()), 12)
    (1.97, 1.0)
    """
    cells = state.shape[1]
    points = (torch.arange(cells, dtype=state.dtype) + 0.5) / cells
    rho = state[..., 0]
    samples = torch.arange(len(state))
    for x, y, height, width in _each(drops.to(state.dtype)):
        shape = torch.exp(-((points - x[:, None]) ** 2) / width[:, None])[:, :, None]
        shape = shape * torch.exp(-((points - y[:, None]) ** 2) / width[:, None])[:, None, :]
        under = rho[samples, _cell(x, cells), _cell(y, cells)]
        shape = torch.minimum(height, (HIGHEST - under).clamp_min(0.0))[:, None, None] * shape
        rho = rho + shape - shape.mean((1, 2), keepdim=True)
    kept = (state[..., 0] / rho)[..., None]
    return torch.cat([rho[..., None], state[..., 1:] * kept], dim=-1)


def averaged(state: Tensor, cells: int) -> Tensor:
    """Depth and velocities `(..., n, n, 3)` on fewer cells: means of mass and momenta."""
    factor = state.shape[-2] // cells
    if factor == 1:
        return state
    mass = state[..., :1]
    conserved = torch.cat([mass, mass * state[..., 1:]], dim=-1)
    for axis in (-3, -2):
        conserved = block_mean(conserved, axis, factor)
    return torch.cat([conserved[..., :1], conserved[..., 1:] / conserved[..., :1]], dim=-1)


def _each(drops: Tensor) -> list[tuple[Tensor, ...]]:
    return [tuple(drop.unbind(-1)) for drop in drops.unbind(1)]


def _cell(place: Tensor, cells: int) -> Tensor:
    return (place * cells).long().clamp(0, cells - 1)
