"""The nine numbers, and the two conventions by which errors of frames become them.

Exact, the default: each sample and field has a score, and scores are averaged, so they do not depend on batches.
For sample b and field c, cell volumes w (Σ_x w = 1), error e = P - T and <.>_t the mean over frames:

    rmse       sqrt <Σ_x w e²>_t
    nrmse      sqrt( <Σ_x w e²>_t / <Σ_x w T²>_t ), which is relative_l2
    max_error  max_{t,x} |e|, and the largest over samples and fields
    crmse      sqrt <(Σ_x w e)²>_t
    brmse      sqrt <mean of e² over the boundary cells>_t
    frmse      mean over the shells s of a band of sqrt <S_s>_t

PDEBench's, for comparison with published numbers: samples come in consecutive mini-batches of a stated size, the last
may be smaller. In each mini-batch, for frame t and field c, with N equal cells, mean_b and max_b over its samples:

    rmse, nrmse, brmse   mean_b sqrt(.), of one frame each
    max_error            max_b max_x |e|
    crmse                sqrt mean_b (mean_x e)²
    frmse                mean over the shells of a band of sqrt mean_b S_s, S_s over non-negative wavenumbers

then the mean over frames and fields, then over mini-batches, each counting the same. In 3D the boundary
squares of all fields are added before the root. `relative_l2`, which PDEBench does not have, is as in the
exact convention with equal cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.metrics.frame_errors import FrameErrors, with_whole
from spectrakan.metrics.spectral import BANDS, band_means

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


class ExactReduction:
    """Sums of the samples' scores, of whole trajectories and of single frames."""

    def __init__(self) -> None:
        self.totals: Totals = {}
        self.samples = 0

    def add(self, errors: FrameErrors) -> None:
        """Add a batch."""
        scores = {
            "rmse": with_whole(errors.error).sqrt(),
            "crmse": with_whole(errors.bias.square()).sqrt(),
            "brmse": with_whole(errors.boundary).sqrt(),
            **band_means(with_whole(errors.shells).sqrt()),
        }
        frames = errors.largest.amax(0)
        new = {name: score.sum(0) for name, score in scores.items()} | relative_totals(errors)
        accumulate(self.totals, new | {"largest": torch.cat([frames.amax(0, keepdim=True), frames])})
        self.samples += errors.error.shape[0]

    def merge(self, other: ExactReduction) -> None:
        """Add the counts and sums of another stream."""
        self.samples += other.samples
        accumulate(self.totals, other.totals)

    def result(self) -> Scores:
        """The scores of all samples."""
        means = {name: self.totals[name] / self.samples for name in ("rmse", "crmse", "brmse", *BANDS)}
        relative, pooled_relative = relative_means(self.totals)
        largest = self.totals["largest"]
        fields = means | {"max_error": largest, "nrmse": relative, "relative_l2": relative}
        pooled = {name: mean.mean(-1) for name, mean in means.items()}
        pooled |= {"max_error": largest.amax(-1), "nrmse": pooled_relative, "relative_l2": pooled_relative}
        return collect_scores(fields, pooled, self.samples)


def pdebench_scores(errors: FrameErrors, batch_size: int, space_dims: int) -> Scores:
    """Scores of samples in the order of the test set; an incomplete last mini-batch counts like a full one."""
    parts = {
        "rmse": errors.error.sqrt(),
        # As published: no guard, so a frame whose truth is zero makes this infinite or NaN.
        "nrmse": errors.error.sqrt() / errors.truth.sqrt(),
        "brmse": errors.boundary.sqrt(),
        "joint_boundary": errors.boundary.sum(-1).sqrt(),
        "squared_bias": errors.bias.square(),
        "shells": errors.shells,
        "largest": errors.largest,
    }
    samples = len(errors.error)
    batches = [
        _batch_scores({name: part[first : first + batch_size] for name, part in parts.items()})
        for first in range(0, samples, batch_size)
    ]
    frames = {name: torch.stack([batch[name] for batch in batches]).mean(0) for name in batches[0]}
    joint = frames.pop("joint_boundary")
    fields = {name: torch.cat([score.mean(0, keepdim=True), score]) for name, score in frames.items()}
    pooled = {name: score.mean(-1) for name, score in fields.items()}
    if space_dims == 3:
        pooled["brmse"] = torch.cat([joint.mean(0, keepdim=True), joint])
    fields["relative_l2"], pooled["relative_l2"] = relative_means(relative_totals(errors))
    return collect_scores(fields, pooled, samples)


def _batch_scores(parts: Totals) -> Totals:
    """Scores of a mini-batch `(T, C)` from those of its samples, `(B, T, C)`; shells `(B, T, S, C)`."""
    scores = {name: parts[name].mean(0) for name in ("rmse", "nrmse", "brmse", "joint_boundary")}
    scores |= {"max_error": parts["largest"].amax(0), "crmse": parts["squared_bias"].mean(0).sqrt()}
    return scores | band_means(parts["shells"].mean(0).sqrt())
