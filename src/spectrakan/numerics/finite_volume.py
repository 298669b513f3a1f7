"""Ghost cells, limited slopes and cell averages for finite-volume schemes."""

from typing import Literal

import torch
from torch import Tensor

GhostBoundary = Literal["periodic", "wall", "outflow"]


def pad_ghost_cells(
    values: Tensor, axis: int, boundary: GhostBoundary, *, width: int = 1, odd: bool = False
) -> Tensor:
    """Add `width` ghost cells at both ends of an axis: `(..., n, ...)` -> `(..., n + 2 width, ...)`.

    periodic: the cells of the other end; outflow: the last cell again, so nothing is reflected;
    wall: the mirror image, with its sign turned if `odd` (the normal component of velocity or momentum).

    >>> pad_ghost_cells(torch.tensor([1.0, 2.0, 3.0]), 0, "wall", odd=True).tolist()
    [-1.0, 1.0, 2.0, 3.0, -3.0]
    """
    size = values.shape[axis]
    if boundary == "periodic":
        before, after = values.narrow(axis, size - width, width), values.narrow(axis, 0, width)
    elif boundary == "outflow":
        shape = list(values.shape)
        shape[axis] = width
        before = values.narrow(axis, 0, 1).expand(shape)
        after = values.narrow(axis, size - 1, 1).expand(shape)
    else:
        before = values.narrow(axis, 0, width).flip(axis)
        after = values.narrow(axis, size - width, width).flip(axis)
        if odd:
            before, after = -before, -after
    return torch.cat([before, values, after], axis)


def mc_slope(padded: Tensor, axis: int) -> Tensor:
    """Monotonised-central slope per cell width: `(..., n + 2, ...)` with ghost cells -> `(..., n, ...)`.

    s = minmod(2 (u_i - u_{i-1}), (u_{i+1} - u_{i-1}) / 2, 2 (u_{i+1} - u_i)): second order where u is
    smooth and monotone, zero at extrema, and u_i +- s/2 stays between the neighbours.

    >>> mc_slope(torch.tensor([0.0, 1.0, 4.0, 4.0]), 0).tolist()
    [2.0, 0.0]
    """
    size = padded.shape[axis]
    jump = padded.narrow(axis, 1, size - 1) - padded.narrow(axis, 0, size - 1)
    before, after = jump.narrow(axis, 0, size - 2), jump.narrow(axis, 1, size - 2)
    central = (before + after).mul_(0.5)
    # With a, b of one sign this is the smallest of the three in magnitude; of two signs, both bounds are 0.
    lowest = torch.maximum(before, after).clamp_max_(0.0).mul_(2.0)
    highest = torch.minimum(before, after).clamp_min_(0.0).mul_(2.0)
    return central.clamp_(lowest, highest)


def refine_cells(padded: Tensor, axis: int, factor: int) -> Tensor:
    """Divide cells into `factor` equal parts with MC-limited linear profiles; `block_mean` is the inverse.

    `(..., n + 2, ...)` with ghost cells -> `(..., n factor, ...)`; no new extremum arises.

    >>> refine_cells(torch.tensor([0.0, 1.0, 2.0]), 0, 2).tolist()
    [0.75, 1.25]
    """
    axis = axis % padded.ndim
    size = padded.shape[axis] - 2
    offset = (torch.arange(factor, dtype=padded.dtype, device=padded.device) + 0.5) / factor - 0.5
    offset = offset.reshape(-1, *[1] * (padded.ndim - axis - 1))
    slope = mc_slope(padded, axis).unsqueeze(axis + 1)
    return (padded.narrow(axis, 1, size).unsqueeze(axis + 1) + slope * offset).flatten(axis, axis + 1)


def disk_cover(edges_x: Tensor, edges_y: Tensor, radius: Tensor) -> Tensor:
    """Fraction of each cell inside the disk around the origin, exact to rounding: `(samples, nx, ny)`.

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

    At t the disk reaches from -s to s, s = sqrt(R² - t²). Where |t| < c = sqrt(R² - y²) the cut at y
    lies inside, and the length below it is y + s; elsewhere it is 2 s if y > 0, else 0.
    """
    x, y = (torch.minimum(torch.maximum(each, -radius), radius) for each in (x, y))
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
