"""How much of each cell a disk covers."""

from __future__ import annotations

import torch
from torch import Tensor


def disk_cover(
    edges_x: Tensor,
    edges_y: Tensor,
    radius: Tensor,
) -> Tensor:
    """Share of each cell inside the disk around the origin, exact to rounding: `(samples, nx, ny)`.

    `edges_x` `(samples, nx + 1)` and `edges_y` are increasing cell faces, `radius` `(samples,)`; float64.

    >>> edges = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    >>> cover = disk_cover(edges, edges, torch.ones(1, dtype=torch.float64))  # a quarter disk: pi / 4
    >>> round(float(cover), 12)
    0.785398163397
    """
    corner = _area_below(edges_x[:, :, None], edges_y[:, None, :], radius[:, None, None])
    area = corner.diff(dim=1).diff(dim=2)
    cell = edges_x.diff(dim=1)[:, :, None] * edges_y.diff(dim=1)[:, None, :]
    return (area / cell).clamp(0.0, 1.0)


def _area_below(x: Tensor, y: Tensor, radius: Tensor) -> Tensor:
    """Area of the part of the disk left of x and below y.

    At place t the disk reaches from -s to s, s = sqrt(R² - t²). Where |t| < c = sqrt(R² - y²) the cut at y
    lies inside, and the length below it is y + s; elsewhere it is 2 s if y > 0, else 0.
    """
    x, y = (torch.minimum(torch.maximum(place, -radius), radius) for place in (x, y))
    reach = (radius**2 - y**2).clamp_min(0.0).sqrt()
    inside = torch.minimum(torch.maximum(x, -reach), reach)
    half_inside = _half_area(inside, radius) + _half_area(reach, radius)
    half_left = _half_area(x, radius) + _half_area(radius, radius)
    full = torch.where(y > 0, 2.0, 0.0) * (half_left - half_inside)
    return full + y * (inside + reach) + half_inside


def _half_area(x: Tensor, radius: Tensor) -> Tensor:
    """Integral of sqrt(R² - t²) from 0 to x."""
    height = (radius**2 - x**2).clamp_min(0.0).sqrt()
    return 0.5 * (x * height + radius**2 * torch.asin((x / radius).clamp(-1.0, 1.0)))
