"""Errors of single samples, so that medians and rare failures stand beside every mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.evaluation.batches import EvaluationSettings, predicted_batches
from spectrakan.fields import Trajectories
from spectrakan.models.operator import Operator

BATCHES = EvaluationSettings(batch_size=64)


def sample_errors(model: Operator, trajectories: Trajectories, horizon: int) -> npt.NDArray[np.float64]:
    """RMSE of each sample over the frames and cells of its rollout, the mean over fields, `(samples,)`.

    Their mean is the RMSE of the `exact` convention; a rollout that is not finite has an infinite error.
    """
    volumes = torch.as_tensor(trajectories.grid.volumes(), dtype=torch.float64)
    weights = (volumes / volumes.sum()).flatten()
    found = []
    for window, frames in predicted_batches(model, trajectories, range(trajectories.num_samples), horizon, BATCHES):
        squares = (frames.double() - window.targets.double()).square().flatten(2, -2)
        over_cells = torch.einsum("btnf,n->btf", squares, weights)
        found.append(over_cells.mean(1).sqrt().mean(1).nan_to_num(nan=float("inf")))
    return torch.cat(found).numpy()


def summary_of(errors: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Mean, median, 99th percentile and largest of the errors; None where not finite, as JSON has no infinity.

    >>> summary_of(np.array([1.0, 3.0, 2.0]))["median"]
    2.0
    """
    numbers = {
        "rmse": errors.mean(),
        "median": np.median(errors),
        "percentile_99": np.quantile(errors, 0.99, method="higher"),
        "worst": errors.max(),
    }
    return {"num_samples": len(errors)} | {
        name: float(value) if np.isfinite(value) else None for name, value in numbers.items()
    }
