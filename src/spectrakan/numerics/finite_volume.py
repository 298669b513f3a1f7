"""Ghost cells, limited slopes and cell averages: what finite-volume schemes share, in any dimension."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from spectrakan.errors import ConfigError, ShapeError

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
    if not 0 <= width <= size:
        raise ShapeError(f"{width} ghost cells need at least as many cells along axis {axis}, got {size}")
    if boundary == "periodic":
        before, after = values.narrow(axis, size - width, width), values.narrow(axis, 0, width)
    elif boundary == "outflow":
        shape = list(values.shape)
        shape[axis] = width
        before = values.narrow(axis, 0, 1).expand(shape)
        after = values.narrow(axis, size - 1, 1).expand(shape)
    elif boundary == "wall":
        before = values.narrow(axis, 0, width).flip(axis)
        after = values.narrow(axis, size - width, width).flip(axis)
        if odd:
            before, after = -before, -after
    else:
        raise ConfigError(f"ghost cells are known for periodic, wall and outflow ends, not for '{boundary}'")
    return torch.cat([before, values, after], axis)


def mc_slope(padded: Tensor, axis: int) -> Tensor:
    """Monotonised-central slope per cell width: `(..., n + 2, ...)` with ghost cells -> `(..., n, ...)`.

    s = minmod(2 (u_i - u_{i-1}), (u_{i+1} - u_{i-1}) / 2, 2 (u_{i+1} - u_i)): second order where u is
    smooth and monotone, zero at extrema, and u_i +- s/2 stays between the neighbours.

    >>> mc_slope(torch.tensor([0.0, 1.0, 4.0, 4.0]), 0).tolist()
    [2.0, 0.0]
    """
    before, after = _one_sided(padded, axis)
    central = (before + after).mul_(0.5)
    # With a, b of one sign this is the smallest of the three in magnitude; of two signs, both bounds are 0.
    lowest = torch.maximum(before, after).clamp_max_(0.0).mul_(2.0)
    highest = torch.minimum(before, after).clamp_min_(0.0).mul_(2.0)
    return central.clamp_(lowest, highest)


def average_cells(values: Tensor, axis: int, factor: int) -> Tensor:
    """Mean of each `factor` neighbouring cells along an axis: `(..., n, ...)` -> `(..., n / factor, ...)`.

    >>> average_cells(torch.tensor([1.0, 3.0, 5.0, 7.0]), 0, 2).tolist()
    [2.0, 6.0]
    """
    axis = axis % values.ndim
    size = values.shape[axis]
    if factor < 1 or size % factor:
        raise ShapeError(f"{size} cells along axis {axis} cannot be averaged in groups of {factor}")
    shape = values.shape
    return values.reshape(*shape[:axis], size // factor, factor, *shape[axis + 1 :]).mean(axis + 1)


def refine_cells(padded: Tensor, axis: int, factor: int) -> Tensor:
    """Cut cells in `factor` equal parts with MC-limited linear profiles; `average_cells` is its inverse.

    `(..., n + 2, ...)` with ghost cells -> `(..., n factor, ...)`; no new extremum arises.

    >>> refine_cells(torch.tensor([0.0, 1.0, 2.0]), 0, 2).tolist()
    [0.75, 1.25]
    """
    axis = axis % padded.ndim
    size = padded.shape[axis] - 2
    place = (torch.arange(factor, dtype=padded.dtype, device=padded.device) + 0.5) / factor - 0.5
    place = place.reshape(-1, *[1] * (padded.ndim - axis - 1))
    slope = mc_slope(padded, axis).unsqueeze(axis + 1)
    return (padded.narrow(axis, 1, size).unsqueeze(axis + 1) + slope * place).flatten(axis, axis + 1)


def _one_sided(padded: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Differences to the cell before and to the cell after, of every inner cell."""
    size = padded.shape[axis]
    if size < 3:
        raise ShapeError(f"slopes need a cell and a ghost cell on each side along axis {axis}, got {size}")
    jump = padded.narrow(axis, 1, size - 1) - padded.narrow(axis, 0, size - 1)
    return jump.narrow(axis, 0, size - 2), jump.narrow(axis, 1, size - 2)
