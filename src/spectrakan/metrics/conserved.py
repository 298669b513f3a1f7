"""Totals over the domain: what a conservation law keeps."""

from __future__ import annotations

import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.fields import Grid
from spectrakan.metrics.shapes import Fields, as_float64, cell_volumes, check_fields


def spatial_mean(values: Tensor, volumes: Tensor) -> Tensor:
    """Volume-weighted mean over space, Σ_x w(x) v(x): `(B, T, *space, C)` to `(B, T, C)`."""
    return torch.matmul(volumes.flatten(), values.flatten(2, -2))


def drift(values: Fields, initial: Fields | None = None, grid: Grid | None = None) -> Tensor:
    """How far the mean over the domain has moved, <v>(t) - <v>(0): `(B, T, *space, C)` to `(B, T, C)`.

    `initial` `(B, *space, C)` is the state the trajectory started from, by default its first frame. A field
    that the equation conserves (mass, periodic or between walls) has zero drift in truth; multiply by
    `grid.total_volume()` for the integral.

    >>> frames = torch.tensor([1.0, 1.5, 2.0]).reshape(1, 3, 1, 1).expand(1, 3, 8, 1)
    >>> drift(frames).flatten().tolist()
    [0.0, 0.5, 1.0]
    """
    check_fields("values", values.shape, grid)
    frames = as_float64(values)
    start = frames[:, :1] if initial is None else as_float64(initial)[:, None].to(frames.device)
    if start.shape[0] != frames.shape[0] or start.shape[2:] != frames.shape[2:]:
        raise ShapeError(
            f"the initial state must have shape {(frames.shape[0], *frames.shape[2:])}, "
            f"got {tuple(start[:, 0].shape)}"
        )
    volumes = cell_volumes(grid, frames.shape[2:-1]).to(frames.device)
    return spatial_mean(frames, volumes) - spatial_mean(start, volumes)
