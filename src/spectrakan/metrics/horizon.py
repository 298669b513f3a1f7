"""How long a prediction stays good."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.metrics.shapes import Fields, as_float64


def time_to_threshold(
    errors: Fields,
    times: Sequence[float] | npt.NDArray[np.float64],
    threshold: float,
) -> Tensor:
    """Time at which the error first passes the threshold: `(..., time)` to `(...)`.

    Between the last frame below and the first above, the error is taken as linear in time. Already above at
    the first frame: that frame's time. A NaN has passed, at the last frame before it. Never above: infinity.

    >>> time_to_threshold(torch.tensor([0.0, 0.25, 0.75]), [1.0, 2.0, 3.0], 0.5).item()
    2.5
    """
    values = as_float64(errors)
    instants = torch.as_tensor(np.asarray(times, dtype=np.float64), device=values.device)
    if values.ndim < 1 or instants.ndim != 1 or values.shape[-1] != instants.numel() or not instants.numel():
        raise ShapeError(
            f"errors {tuple(values.shape)} need one time for each frame on the last axis, "
            f"got {tuple(instants.shape)} times"
        )
    above = ~(values <= threshold)
    first = above.to(torch.int64).argmax(-1, keepdim=True)
    before = (first - 1).clamp_min(0)
    low, high = values.gather(-1, before), values.gather(-1, first)
    share = torch.where(high.isfinite() & (first > 0), (threshold - low) / (high - low), 0.0)
    start, end = instants[before], instants[first]
    crossing = torch.where(first > 0, start + share * (end - start), end)
    return torch.where(above.any(-1, keepdim=True), crossing, torch.inf).squeeze(-1)
