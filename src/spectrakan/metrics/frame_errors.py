"""Sums over space: what one sample, one frame and one field contribute to the scores, before any average over them.

The sums reduce `(B, T, *space, C)` to `(B, T, C)`; `volumes` w are shares of the domain, Σ_x w(x) = 1. Below them
stand measures beside the nine scores: the error of each frame, and explained anomalies.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.fields import Grid
from spectrakan.metrics.shapes import Fields, as_float64, cell_volumes, check_pair
from spectrakan.metrics.spectral import shell_energies, shells_of


@dataclass(frozen=True, eq=False)
class FrameErrors:
    """Reductions over space of the error e = P - T and of the truth, `(batch, time, channel)` each, on the CPU."""

    error: Tensor
    """Mean of e²."""
    truth: Tensor
    """Mean of T²."""
    largest: Tensor
    """Largest |e|."""
    bias: Tensor
    """Mean of e."""
    boundary: Tensor
    """Mean of e² over the boundary cells; NaN where any cell of the frame is not finite."""
    shells: Tensor
    """`(batch, time, shell, channel)` energy of e in each shell of wavenumbers."""


def frame_errors(pred: Tensor, target: Tensor, volumes: Tensor, signed: bool) -> FrameErrors:
    """Reduce float64 fields `(B, T, *space, C)` over space; `signed` as in `shells_of`."""
    volumes = volumes.to(pred.device)
    error = pred - target
    square = mean_square(error, volumes)
    # A NaN inside the domain marks a failed prediction: the boundary score must not hide it.
    boundary = torch.where(square.isfinite(), boundary_mean_square(error, volumes), torch.nan)
    return FrameErrors(
        error=square.cpu(),
        truth=mean_square(target, volumes).cpu(),
        # Cells last: a maximum along contiguous memory is five times as fast as one across channels.
        largest=error.movedim(-1, 2).flatten(3).abs().amax(-1).cpu(),
        bias=spatial_mean(error, volumes).cpu(),
        boundary=boundary.cpu(),
        shells=shell_energies(error, shells_of(tuple(volumes.shape), signed)).cpu(),
    )


def mean_square(values: Tensor, volumes: Tensor) -> Tensor:
    """Volume-weighted mean of the square, Σ_x w(x) v(x)².

    >>> mean_square(torch.full((1, 1, 4, 1), 3.0), torch.full((4,), 0.25)).item()
    9.0
    """
    return spatial_mean(values.square(), volumes)


def spatial_mean(values: Tensor, volumes: Tensor) -> Tensor:
    """Volume-weighted mean over space, Σ_x w(x) v(x)."""
    return torch.matmul(volumes.flatten(), values.flatten(2, -2))


def boundary_mean_square(values: Tensor, volumes: Tensor) -> Tensor:
    """Mean square over the cells on the 2d faces of the domain.

        Σ_faces Σ_{x on face} w(x) v(x)² / Σ_faces Σ_{x on face} w(x)

    A cell on an edge lies on two faces and counts for both. The ends of a periodic axis are faces like
    others. With equal cells this is PDEBench's sum over 2 (1D), 2nx + 2ny (2D) or 2nxny + 2nynz + 2nznx (3D).

    >>> error = torch.tensor([1.0, 9.0, 9.0, 3.0]).reshape(1, 1, 4, 1)
    >>> boundary_mean_square(error, torch.full((4,), 0.25)).item()
    5.0
    """
    total = values.new_zeros((values.shape[0], values.shape[1], values.shape[-1]))
    weight = volumes.new_zeros(())
    for axis in range(volumes.ndim):
        for end in (0, -1):
            square, share = values.select(2 + axis, end).square(), volumes.select(axis, end)
            # The faces of a line are single cells and have no axis of their own.
            cells = square.unsqueeze(2) if square.ndim == 3 else square.flatten(2, -2)
            total = total + torch.einsum("btnc,n->btc", cells, share.flatten())
            weight = weight + share.sum()
    return total / weight


def with_whole(frames: Tensor) -> Tensor:
    """Squares by frame `(B, T, ...)` with their mean over the frames put in front: `(B, 1 + T, ...)`."""
    return torch.cat([frames.mean(1, keepdim=True), frames], dim=1)


def relative_error(pred: Fields, target: Fields, grid: Grid | None = None) -> Tensor:
    """Relative L2 error of every sample, frame and field, ||P - T|| / ||T||.

    `(B, T, *space, C)` to `(B, T, C)`. Where the truth of a frame is zero there is nothing to compare with:
    0 if the prediction is zero too, else NaN.

    >>> truth = torch.tensor([3.0, 4.0]).reshape(1, 1, 2, 1)
    >>> relative_error(1.5 * truth, truth).item()
    0.5
    """
    check_pair(pred.shape, target.shape, grid)
    true = as_float64(target)
    volumes = cell_volumes(grid, true.shape[2:-1]).to(true.device)
    error = mean_square(as_float64(pred).to(true.device) - true, volumes)
    truth = mean_square(true, volumes)
    undefined = torch.where(error == 0, 0.0, torch.nan)
    return torch.where(truth == 0, undefined, (error / truth).sqrt())


def anomaly_r2(pred: Tensor, target: Tensor, climatology: Tensor, weights: Tensor) -> Tensor:
    """Fraction of the variance of anomalies that is predicted, over all samples, frames and cells.

    R² = 1 - Σ w (P - T)² / Σ w (T - c)², with `pred` P and `target` T `(B, time, *space, C)`, the
    `climatology` c `(*space, C)` of the training days, and cell volumes `weights` w `(*space)`; gives `(C,)`.

    Predicting the climatology gives exactly 0, the truth 1, something worse than the climatology a negative
    number. A pressure field is so nearly constant that a relative error below 1 % means little; this score
    measures what is learned beyond the mean field. It is NaN where the truth equals the climatology everywhere.

    >>> truth = torch.tensor([1000.0, 1010.0]).reshape(2, 1, 1, 1)
    >>> anomaly_r2(truth - 1.0, truth, torch.full((1, 1), 1005.0), torch.ones(1)).item()
    0.96
    """
    check_pair(pred.shape, target.shape)
    if climatology.shape != target.shape[2:] or weights.shape != target.shape[2:-1]:
        raise ShapeError(
            f"climatology must be {tuple(target.shape[2:])} and weights {tuple(target.shape[2:-1])}, got "
            f"{tuple(climatology.shape)} and {tuple(weights.shape)}"
        )
    truth, volumes = as_float64(target), weights.double()
    missed = mean_square(as_float64(pred) - truth, volumes).sum((0, 1))
    departure = mean_square(truth - climatology.double(), volumes).sum((0, 1))
    return torch.where(departure > 0, 1.0 - missed / departure, torch.nan)
