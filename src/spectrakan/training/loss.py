"""How far predicted frames are from true ones, at unit scale, as one number a sample.

With e = p - t, cell weights w_x summing to one over the observed cells, and ||v||² = sum_x w_x v_x²:

mse          mean over frames and fields of ||e||²
relative_l2  mean over frames and fields of ||e|| / max(||t||, FLOOR)

Every sample counts the same, so the mean over processes of means over their batches is the mean over all.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spectrakan.fields import Grid, GridPart
from spectrakan.fields.grid_part import summed

Fields = Float[Tensor, "batch time *space field"]
LossName = Literal["mse", "relative_l2"]
FLOOR = 0.05
"""Smallest norm that an error is put in relation to: fields that begin at rest would else weigh without bound."""


def loss(
    name: LossName,
    pred: Fields,
    target: Fields,
    *,
    grid: Grid | None = None,
    observed: Bool[Tensor, "batch 1 *space 1"] | None = None,
) -> Float[Tensor, " batch"]:
    """The loss of each sample; `observed` marks the cells that count.

    >>> truth = torch.ones(1, 1, 8, 1)
    >>> round(float(loss("relative_l2", 1.1 * truth, truth)), 4)
    0.1
    """
    weights = cell_weights(pred, grid, observed)
    error = summed(_square(pred - target, weights), grid)
    if name != "mse":
        # The root has no slope at zero; the tiny constant keeps the gradient of a perfect prediction finite.
        error = (error + 1e-24).sqrt() / summed(_square(target, weights), grid).clamp_min(FLOOR**2).sqrt()
    return error.mean((1, 2))


def cell_weights(like: Fields, grid: Grid | None, observed: Tensor | None) -> Tensor:
    """Share of each cell in the norms, `(batch or 1, 1, *space, 1)`, summing to one over space."""
    space = like.shape[2:-1]
    if grid is None or grid.is_uniform():
        cells = math.prod(grid.whole.shape if isinstance(grid, GridPart) else space)
        volumes = torch.full((1, 1, *space, 1), 1.0 / cells, dtype=like.dtype, device=like.device)
    else:
        volumes = grid.volumes()[None, None, ..., None].to(like)
    if observed is None:
        return volumes
    seen = volumes * observed.to(like)
    return seen / summed(seen.flatten(1).sum(1), grid).view(-1, *[1] * (like.ndim - 1))


def _square(values: Tensor, weights: Tensor) -> Tensor:
    """Squared norms, `(batch, time, field)`."""
    return (values.square() * weights).flatten(2, -2).sum(2)
