"""Gaussian bumps around centres: as weights that sum to one, and as a basis of functions of one variable."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


def gaussian_weights(
    points: Float[Tensor, " n"], centres: Float[Tensor, " g"], sharpness: float
) -> Float[Tensor, "n g"]:
    """exp(-s (x - c)^2) / sum_c exp(-s (x - c)^2), rows summing to one.

    Written as a softmax, the largest exponent is subtracted first, so no row becomes 0/0, whatever the
    sharpness. On a lattice of centres the weights in several dimensions are products of these.
    """
    return torch.softmax(-sharpness * (points[:, None] - centres).square(), dim=1)


def radial_basis(x: Tensor, centres: Float[Tensor, " g"], width: Tensor | float) -> Tensor:
    """exp(-((x - c) / width)^2), `(...)` -> `(..., g)`."""
    return (-((x[..., None] - centres) / width).square()).exp()


def sincos_positions(points: Float[Tensor, " n"], width: int) -> Float[Tensor, "n width"]:
    """Sines, then cosines, of `points` at width / 2 frequencies falling from 1 to 1/10000 in geometric steps."""
    half = width // 2
    order = torch.arange(half, dtype=points.dtype, device=points.device)
    angle = points[:, None] * torch.exp(-math.log(1e4) * order / max(half, 1))
    odd = [torch.zeros_like(points[:, None])] if width % 2 else []
    return torch.cat([angle.sin(), angle.cos(), *odd], dim=1)
