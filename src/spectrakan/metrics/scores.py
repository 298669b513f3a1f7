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

Tables = dict[str, Tensor]
"""By name `(samples, 1 + time, channel)`; row 0 is the whole trajectory and row t the frame t - 1."""


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
        num_samples=num_samples,
    )


def sample_tables(errors: FrameErrors) -> Tables:
    """The exact scores of every sample and field.

    A relative error does not exist where the truth is zero: there `counted` is zero, and `missed` has the error.
    """
    square, truth, largest = with_whole(errors.error), with_whole(errors.truth), errors.largest
    counted = truth != 0  # a NaN in the truth counts and makes the score NaN
    return {
        "rmse": square.sqrt(),
        "crmse": with_whole(errors.bias.square()).sqrt(),
        "brmse": with_whole(errors.boundary).sqrt(),
        **band_means(with_whole(errors.shells).sqrt()),
        "max_error": torch.cat([largest.amax(1, keepdim=True), largest], dim=1),
        "relative": torch.where(counted, (square / torch.where(counted, truth, 1.0)).sqrt(), 0.0),
        "counted": counted.to(square),
        "missed": torch.where(counted, 0.0, square),
    }


def exact_scores(tables: Tables) -> Scores:
    """The mean over samples of their scores, and the largest error of all."""
    means = {name: tables[name].mean(0) for name in ("rmse", "crmse", "brmse", *BANDS)}
    largest, relative, pooled_relative = tables["max_error"].amax(0), *relative_means(tables)
    fields = means | {"max_error": largest, "nrmse": relative, "relative_l2": relative}
    pooled = {name: mean.mean(-1) for name, mean in means.items()}
    pooled |= {"max_error": largest.amax(-1), "nrmse": pooled_relative, "relative_l2": pooled_relative}
    return collect_scores(fields, pooled, len(tables["rmse"]))


def relative_means(tables: Tables) -> tuple[Tensor, Tensor]:
    """The mean relative error of each field `(1 + time, channel)` and of all fields together `(1 + time)`.

    Where the truth is zero in all samples the score is 0 if the predictions are zero too, else 1: all of
    the prediction is error.
    """
    parts = [tables[name].sum(0) for name in ("relative", "counted", "missed")]
    return _relative_mean(*parts), _relative_mean(*(part.sum(-1) for part in parts))


def _relative_mean(total: Tensor, count: Tensor, missed: Tensor) -> Tensor:
    without_truth = torch.where(missed == 0, 0.0, 1.0)
    # A prediction that is NaN is never hidden, also where its sample is not counted.
    failed = torch.where(missed.isnan(), torch.nan, 0.0)
    return torch.where(count > 0, total / count.clamp_min(1.0), without_truth) + failed


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
    fields["relative_l2"], pooled["relative_l2"] = relative_means(sample_tables(errors))
    return collect_scores(fields, pooled, samples)


def _batch_scores(parts: Tables) -> Tables:
    """Scores of a mini-batch `(T, C)` from those of its samples, `(B, T, C)`; shells `(B, T, S, C)`."""
    scores = {name: parts[name].mean(0) for name in ("rmse", "nrmse", "brmse", "joint_boundary")}
    scores |= {"max_error": parts["largest"].amax(0), "crmse": parts["squared_bias"].mean(0).sqrt()}
    return scores | band_means(parts["shells"].mean(0).sqrt())
