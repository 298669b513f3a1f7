"""The nine numbers, the result that holds them, and the running sums from which both conventions form them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.metrics.frame_errors import FrameErrors, with_whole

METRICS = ("rmse", "nrmse", "max_error", "crmse", "brmse", "frmse_low", "frmse_mid", "frmse_high", "relative_l2")
"""Names of the scores, in the order of the tables."""

Totals = dict[str, Tensor]
"""Running sums by name; a stream keeps them instead of the samples."""


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
        return {name: {key: float(self.per_field[key][at]) for key in METRICS} for at, name in enumerate(names)}


def collect_scores(fields: Mapping[str, Tensor], pooled: Mapping[str, Tensor], num_samples: int) -> Scores:
    """Scores from tables.

    Row 0 is the whole trajectory and row t the frame t - 1, both in `fields` `(1 + time, channel)` and in
    `pooled` `(1 + time)`, where all fields are taken together.
    """
    return Scores(
        reduced={name: float(pooled[name][0]) for name in METRICS},
        per_field={name: fields[name][0].numpy() for name in METRICS},
        per_frame={name: pooled[name][1:].numpy() for name in METRICS},
        per_frame_and_field={name: fields[name][1:].numpy() for name in METRICS},
        num_samples=num_samples,
    )


def accumulate(totals: Totals, new: Totals) -> None:
    """Add `new` sums to `totals`; of `largest` the larger value is kept."""
    for name, value in new.items():
        known = totals.get(name)
        joined = torch.maximum if name == "largest" else torch.add
        totals[name] = value if known is None else joined(known, value)


def relative_totals(errors: FrameErrors) -> Totals:
    """Sums over the batch of ||e|| / ||T||, over all frames and over each frame, `(1 + time, channel)`.

    A relative error does not exist where the truth is zero: such a pair of sample and field is not counted.
    """
    error, truth = with_whole(errors.error), with_whole(errors.truth)
    defined = truth != 0  # a NaN in the truth counts as defined and makes the score NaN
    ratio = torch.where(defined, (error / torch.where(defined, truth, 1.0)).sqrt(), 0.0)
    return {
        "relative_sum": ratio.sum(0),
        "relative_count": defined.to(torch.float64).sum(0),
        "relative_missed": torch.where(defined, 0.0, error).sum(0),
    }


def relative_means(totals: Totals) -> tuple[Tensor, Tensor]:
    """The mean relative error of each field `(1 + time, channel)` and of all fields together `(1 + time)`.

    Where the truth is zero in all samples the score is 0 if the predictions are zero too, else 1: all of
    the prediction is error.
    """
    parts = (totals["relative_sum"], totals["relative_count"], totals["relative_missed"])
    return _relative_mean(*parts), _relative_mean(*(part.sum(-1) for part in parts))


def _relative_mean(total: Tensor, count: Tensor, missed: Tensor) -> Tensor:
    without_truth = torch.where(missed == 0, 0.0, 1.0)
    # A prediction that is NaN is never hidden, also where its sample is not counted.
    failed = torch.where(missed.isnan(), torch.nan, 0.0)
    return torch.where(count > 0, total / count.clamp_min(1.0), without_truth) + failed


def pack_totals(totals: Totals) -> dict[str, Any]:
    """Tensors as shape and list of numbers, exact to the last bit; NaN and infinity, which JSON lacks, become text.

    >>> pack_totals({"rmse": torch.tensor([0.5, math.nan])})
    {'rmse': {'shape': [2], 'values': [0.5, 'nan']}}
    """
    return {
        name: {
            "shape": list(total.shape),
            "values": [x if math.isfinite(x) else str(x) for x in total.flatten().tolist()],
        }
        for name, total in totals.items()
    }


def unpack_totals(packed: Mapping[str, Any]) -> Totals:
    """The inverse of `pack_totals`."""
    return {
        name: torch.tensor([float(x) for x in entry["values"]], dtype=torch.float64).reshape(entry["shape"])
        for name, entry in packed.items()
    }
