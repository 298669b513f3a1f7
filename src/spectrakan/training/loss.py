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

from spectrakan.fields import Grid

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
    step_reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, " batch"]:
    """The loss of each sample; `observed` marks the cells that count, `step_reduction` is over frames.

    >>> truth = torch.ones(1, 1, 8, 1)
    >>> round(float(loss("relative_l2", 1.1 * truth, truth)), 4)
    0.1
    """
    weights = cell_weights(pred, grid, observed)
    error = _square(pred - target, weights)
    if name != "mse":
        # The root has no slope at zero; the tiny constant keeps the gradient of a perfect prediction finite.
        error = (error + 1e-24).sqrt() / _square(target, weights).clamp_min(FLOOR**2).sqrt()
    per_frame = error.mean(-1)
    return per_frame.sum(1) if step_reduction == "sum" else per_frame.mean(1)


def cell_weights(like: Fields, grid: Grid | None, observed: Tensor | None) -> Tensor:
    """Share of each cell in the norms, `(batch or 1, 1, *space, 1)`, summing to one over space."""
    space = like.shape[2:-1]
    if grid is None or grid.is_uniform():
        volumes = torch.full((1, 1, *space, 1), 1.0 / math.prod(space), dtype=like.dtype, device=like.device)
    else:
        volumes = grid.volumes()[None, None, ..., None].to(like)
    if observed is None:
        return volumes
    seen = volumes * observed.to(like)
    return seen / seen.flatten(1).sum(1).view(-1, *[1] * (like.ndim - 1))


def _square(values: Tensor, weights: Tensor) -> Tensor:
    """Squared norms, `(batch, time, field)`."""
    return (values.square() * weights).flatten(2, -2).sum(2)
