"""The nine numbers, and the result that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.errors import ShapeError

METRICS = (
    "rmse",
    "nrmse",
    "max_error",
    "crmse",
    "brmse",
    "frmse_low",
    "frmse_mid",
    "frmse_high",
    "relative_l2",
)
"""Names of the scores, in the order of the tables."""

Totals = dict[str, Tensor]
"""Running sums by name; what a stream keeps instead of the samples."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Every metric, reduced to one number and not.

    The score of a field is what the field alone would get, and the score of a frame what the frame alone
    would get; the reduced score is in general not the mean over frames.
    """

    reduced: dict[str, float]
    """One number a metric."""
    per_field: dict[str, npt.NDArray[np.float64]]
    """`(channel,)` a metric."""
    per_frame: dict[str, npt.NDArray[np.float64]]
    """`(time,)` a metric: the error against time."""
    per_frame_and_field: dict[str, npt.NDArray[np.float64]]
    """`(time, channel)` a metric."""
    num_samples: int

    def by_field(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """The scores of each field under its name, as a record keeps them."""
        channels = len(self.per_field["rmse"])
        if len(names) != channels or len(set(names)) != channels:
            raise ShapeError(f"{channels} fields need as many different names, got {list(names)}")
        return {
            name: {metric: float(self.per_field[metric][place]) for metric in METRICS}
            for place, name in enumerate(names)
        }


def collect_scores(fields: Mapping[str, Tensor], pooled: Mapping[str, Tensor], num_samples: int) -> Scores:
    """Sort scores into their places.

    Row 0 is the whole trajectory and row t the frame t - 1, both in `fields` `(1 + time, channel)` and in
    `pooled` `(1 + time)`, where all fields are taken together.
    """
    each = {name: np.asarray(fields[name]) for name in METRICS}
    joint = {name: np.asarray(pooled[name]) for name in METRICS}
    return Scores(
        reduced={name: float(joint[name][0]) for name in METRICS},
        per_field={name: each[name][0] for name in METRICS},
        per_frame={name: joint[name][1:] for name in METRICS},
        per_frame_and_field={name: each[name][1:] for name in METRICS},
        num_samples=num_samples,
    )


def with_whole(frames: Tensor) -> Tensor:
    """Squares by frame `(B, T, ...)` with their mean over the frames put in front: `(B, 1 + T, ...)`."""
    return torch.cat([frames.mean(1, keepdim=True), frames], dim=1)
