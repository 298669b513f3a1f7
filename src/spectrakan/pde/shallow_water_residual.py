"""How far given frames are from solving the shallow water equations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spectrakan.errors import ShapeError


def conservation_defect(
    values: Tensor,
    times: Sequence[float],
    spacing: tuple[float, float],
    gravity: float,
    bottom: Tensor | None = None,
) -> Tensor:
    """Imbalance of mass and momentum around each frame, differentiable in the values.

    Over each interval r = q_t + F_x + G_y - S with trapezoid rule in time and central differences inside the
    domain; the interval's defect is |r| / (|q_t| + |F_x + G_y| + |S|) in root mean square over cells and
    equations, momenta divided by sqrt(g mean h): 0 where the terms cancel (or all vanish), at most 1.
    A frame gets the mean of the intervals that it ends and starts.

    `values` `(B, T, nx, ny, 3)`, level of the ground `bottom` `(B, nx, ny)` or None -> `(B, T)`.
    """
    if len(times) < 2:
        raise ShapeError("the imbalance of a flow needs at least 2 frames, got 1")
    height, velocity = values[..., 0], values[..., 1:]
    conserved = torch.stack([height, height * velocity[..., 0], height * velocity[..., 1]], dim=-1)
    terms = [_flux_divergence(conserved, velocity, spacing, gravity)]
    if bottom is not None:
        slope = _bed_slope(bottom, spacing)[:, None]
        terms.append(gravity * height[:, :, 1:-1, 1:-1, None] * slope)
    terms = [(term[:, 1:] + term[:, :-1]) / 2 for term in terms]
    steps = torch.tensor(times, dtype=values.dtype, device=values.device).diff()
    terms.append(conserved[:, :, 1:-1, 1:-1].diff(dim=1) / steps[:, None, None, None])
    mean_height = height.mean(dim=(1, 2, 3))
    celerity = (gravity * mean_height).sqrt()
    units = torch.stack([torch.ones_like(celerity), 1 / celerity, 1 / celerity], dim=-1)[:, None, None, None]
    # Changes that rounding alone would make do not count as terms that fail to cancel.
    rounding = 100 * torch.finfo(values.dtype).eps * mean_height[:, None] / steps
    total = sum((_size(term * units) for term in terms), start=rounding)
    defect = _size(sum(terms[1:], start=terms[0]) * units) / total
    return torch.cat([defect[:, :1], (defect[:, 1:] + defect[:, :-1]) / 2, defect[:, -1:]], dim=1)


def _flux_divergence(conserved: Tensor, velocity: Tensor, spacing: tuple[float, float], gravity: float) -> Tensor:
    """F_x + G_y on the inner cells."""
    pressure = 0.5 * gravity * conserved[..., :1] ** 2
    total = torch.zeros((), dtype=conserved.dtype, device=conserved.device)
    for axis in (0, 1):
        push = torch.nn.functional.pad(pressure, (1 + axis, 1 - axis))
        total = total + _central(conserved * velocity[..., axis : axis + 1] + push, axis + 2, spacing[axis])
    return total


def _bed_slope(bottom: Tensor, spacing: tuple[float, float]) -> Tensor:
    """(0, b_x, b_y) on the inner cells, `(samples, nx - 2, ny - 2, 3)`."""
    level = bottom[..., None]
    along = [_central(level, axis + 1, spacing[axis])[..., 0] for axis in (0, 1)]
    return torch.stack([torch.zeros_like(along[0]), *along], dim=-1)


def _central(values: Tensor, axis: int, width: float) -> Tensor:
    """Central difference along one space axis of `(..., nx, ny, C)`, on the inner cells of both."""
    size = values.shape[axis]
    slope = (values.narrow(axis, 2, size - 2) - values.narrow(axis, 0, size - 2)) / (2 * width)
    other = values.ndim - 3 if axis == values.ndim - 2 else values.ndim - 2
    return slope.narrow(other, 1, slope.shape[other] - 2)


def _size(field: Tensor) -> Tensor:
    """Root mean square over cells and equations, with a finite slope at zero."""
    return (field.square().mean(dim=(2, 3, 4)) + torch.finfo(field.dtype).tiny).sqrt()
