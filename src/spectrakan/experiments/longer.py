"""Rollouts far beyond the horizon of the task: how the error grows, and whether the solution blows up."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from spectrakan.evaluation.evaluate import predict_frames
from spectrakan.fields import Trajectories
from spectrakan.models.operator import Operator

BLOWN_UP = 10.0
"""A prediction this many times the largest departure of the truth from its mean counts as blown up."""


def stability(model: Operator, trajectories: Trajectories, horizon: int, *, batch_size: int = 8) -> dict[str, Any]:
    """Roll out to the last frame of `trajectories`; errors frame by frame, and how many samples blow up.

    e_t = ||p_t - u_t|| / ||u_t||, the mean over fields and the median over samples, so that one blow-up does not
    hide the others. `growth` is the last one over that at `horizon`.
    """
    history = model.signature.history
    truth = torch.from_numpy(np.asarray(trajectories.values, dtype=np.float32))
    ahead = truth.shape[1] - history
    errors, lost = [], 0
    for first in range(0, len(truth), batch_size):
        part = truth[first : first + batch_size]
        params = (
            None if trajectories.params is None else torch.from_numpy(trajectories.params[first : first + batch_size])
        )
        pred = predict_frames(model, part[:, :history], ahead, params, trajectories.grid)
        errors.append(_relative(pred, part[:, history:]))
        lost += int(_blown_up(pred, part[:, history:]).sum())
    curve = torch.cat(errors).median(dim=0).values.tolist()
    return {
        "horizon": ahead,
        "num_samples": len(truth),
        "blown_up": lost,
        "times": [float(time) for time in trajectories.times[history:]],
        "relative_l2": curve,
        "at_horizon": curve[horizon - 1],
        "at_end": curve[-1],
        "growth": curve[-1] / max(curve[horizon - 1], 1e-12),
    }


def _relative(pred: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """`(samples, frames)`, the mean over fields; what is not finite counts as infinite."""
    axes = tuple(range(2, truth.ndim - 1))
    error, size = ((values.double().square().sum(axes)).sqrt() for values in (pred - truth, truth))
    ratio = torch.where(size > 0, error / size.clamp_min(1e-30), error).mean(-1)
    return torch.nan_to_num(ratio, nan=float("inf"), posinf=float("inf"))


def _blown_up(pred: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Which samples leave every bound: not finite, or far larger than the truth ever is."""
    flat, true = pred.flatten(1, -2), truth.flatten(1, -2)
    middle = true.mean(1, keepdim=True)
    spread = (true - middle).abs().amax((0, 1)).clamp_min(1e-6)
    far = ((flat - middle).abs() > BLOWN_UP * spread).any(1) | ~flat.isfinite().all(1)
    return far.any(-1)
