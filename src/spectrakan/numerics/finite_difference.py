"""Derivatives of sampled functions by polynomials through neighbouring points, and residuals; differentiable."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spectrakan.errors import ShapeError


def differentiation_matrix(points: Tensor) -> Tensor:
    """Matrix `(n, n)` that takes values at increasing points `(n,)` to first derivatives there.

    Row i differentiates the polynomial through the 5 points nearest in index (fewer where there are fewer),
    one-sided at the ends: exact for polynomials of degree 4, on any spacing.
    """
    count = points.numel()
    width = min(5, count)
    if points.ndim != 1 or count < 2:
        raise ShapeError(f"a derivative needs at least 2 points in a row, got shape {tuple(points.shape)}")
    x = points.detach().to(torch.float64)
    matrix = torch.zeros((count, count), dtype=torch.float64, device=points.device)
    for row in range(count):
        start = min(max(row - width // 2, 0), count - width)
        # Scaled to (-1, 1), so that the small system is well conditioned.
        offset = x[start : start + width] - x[row]
        scale = offset.abs().max()
        powers = (offset / scale)[None, :] ** torch.arange(width, device=x.device)[:, None]
        slope = torch.zeros(width, dtype=torch.float64, device=x.device)
        slope[1] = 1.0
        matrix[row, start : start + width] = torch.linalg.solve(powers, slope) / scale
    return matrix


def differentiate_frames(values: Tensor, times: Sequence[float], axis: int) -> Tensor:
    """d/dt along an axis whose entries are frames at `times`; the shape stays.

    >>> differentiate_frames(torch.tensor([0.0, 1.0, 4.0, 16.0]), [0.0, 1.0, 2.0, 4.0], 0).round(decimals=4)
    tensor([0., 2., 4., 8.])
    """
    if values.shape[axis] != len(times):
        raise ShapeError(f"axis {axis} must have one frame for each of {len(times)} times, got {values.shape[axis]}")
    points = torch.tensor([float(time) for time in times], dtype=torch.float64, device=values.device)
    return _apply(differentiation_matrix(points).to(values.dtype), values, axis)


def differentiate_cells(values: Tensor, axis: int, width: float, *, periodic: bool) -> Tensor:
    """d/dx along an axis of equal cells, fourth order; one-sided at the ends unless periodic.

    du/dx = (8 (u_{i+1} - u_{i-1}) - (u_{i+2} - u_{i-2})) / (12 dx)

    >>> differentiate_cells(torch.tensor([0.0, 1.0, 0.0, -1.0, 0.0]), 0, 1.0, periodic=True)[0]
    tensor(0.5833)
    """
    if periodic:
        near = values.roll(-1, axis) - values.roll(1, axis)
        far = values.roll(-2, axis) - values.roll(2, axis)
        return (8.0 * near - far) / (12.0 * width)
    points = width * torch.arange(values.shape[axis], dtype=torch.float64, device=values.device)
    return _apply(differentiation_matrix(points).to(values.dtype), values, axis)


def relative_imbalance(*terms: Tensor) -> Tensor:
    """|a + b + ...| / (|a| + |b| + ...) in the 2-norm over the last axis: 0 where the terms cancel, at most 1."""
    left: Tensor = torch.linalg.vector_norm(sum(terms[1:], start=terms[0]), dim=-1)
    sizes: list[Tensor] = [torch.linalg.vector_norm(term, dim=-1) for term in terms]
    return left / (sum(sizes[1:], start=sizes[0]) + torch.finfo(left.dtype).tiny)


def _apply(matrix: Tensor, values: Tensor, axis: int) -> Tensor:
    slopes: Tensor = torch.tensordot(matrix, values, dims=([1], [axis]))
    return slopes.movedim(0, axis)
