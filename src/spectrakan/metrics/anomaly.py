"""How much of the departure from the usual state a prediction explains."""

from __future__ import annotations

import torch
from torch import Tensor

from spectrakan.errors import ShapeError


def anomaly_r2(pred: Tensor, target: Tensor, climatology: Tensor, weights: Tensor) -> Tensor:
    """Share of the anomalies' variance that is predicted, over all samples, frames and cells.

    R² = 1 - Σ w (P - T)² / Σ w (T - c)², with `pred` P and `target` T `(B, time, *space, C)`, the
    `climatology` c `(*space, C)` of the training days, and cell volumes `weights` w `(*space)`; gives `(C,)`.

    Predicting the climatology gives exactly 0, the truth 1, something worse than the climatology a negative
    number. A pressure field is so nearly constant that a relative error below 1 % says little; this score
    says what was learned beyond the mean field. Where the truth never leaves the climatology there is
    nothing to explain: NaN. Sums are in float64.

    >>> truth = torch.tensor([1000.0, 1010.0]).reshape(2, 1, 1, 1)
    >>> usual = torch.full((1, 1), 1005.0)
    >>> anomaly_r2(truth - 1.0, truth, usual, torch.ones(1)).item()
    0.96
    """
    if pred.ndim < 4 or pred.shape != target.shape:
        raise ShapeError(
            "pred and target must both be (batch, time, *space, channel), got "
            f"{tuple(pred.shape)} and {tuple(target.shape)}"
        )
    if climatology.shape != target.shape[2:] or weights.shape != target.shape[2:-1]:
        raise ShapeError(
            f"climatology must be {tuple(target.shape[2:])} and weights {tuple(target.shape[2:-1])}, got "
            f"{tuple(climatology.shape)} and {tuple(weights.shape)}"
        )
    truth = target.double()
    missed = _weighted_squares(pred.double() - truth, weights)
    departure = _weighted_squares(truth - climatology.double(), weights)
    return torch.where(departure > 0, 1.0 - missed / departure, torch.nan)


def _weighted_squares(values: Tensor, weights: Tensor) -> Tensor:
    """Σ w v² over samples, frames and cells: `(B, time, *space, C)` to `(C,)`."""
    per_cell = values.square().sum(dim=(0, 1))
    return torch.matmul(weights.double().flatten(), per_cell.flatten(0, -2))
