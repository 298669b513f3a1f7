"""Measures beside the nine scores: error of each frame, explained anomalies."""

from __future__ import annotations

import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.fields import Grid
from spectrakan.metrics.frame_errors import mean_square
from spectrakan.metrics.shapes import Fields, as_float64, cell_volumes, check_fields, check_pair


def relative_error(pred: Fields, target: Fields, grid: Grid | None = None) -> Tensor:
    """Relative L2 error of every sample, frame and field, ||P - T|| / ||T||.

    `(B, T, *space, C)` to `(B, T, C)`. Where the truth of a frame is zero there is nothing to compare with:
    0 if the prediction is zero too, else NaN.

    >>> truth = torch.tensor([3.0, 4.0]).reshape(1, 1, 2, 1)
    >>> relative_error(1.5 * truth, truth).item()
    0.5
    """
    check_fields("prediction", pred.shape, grid)
    check_pair(pred.shape, target.shape)
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
    check_fields("prediction", pred.shape)
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
