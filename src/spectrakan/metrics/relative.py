"""The relative error, averaged over samples and fields whose truth is not zero."""

from __future__ import annotations

import torch
from torch import Tensor

from spectrakan.metrics.moments import Moments
from spectrakan.metrics.scores import Totals, with_whole


def relative_totals(moments: Moments) -> Totals:
    """Sums over the batch of ||e|| / ||T||, over all frames and over each frame, `(1 + time, channel)`.

    A relative error does not exist where the truth is zero: such a pair of sample and field is not counted.
    """
    error, truth = with_whole(moments.error), with_whole(moments.truth)
    defined = truth != 0  # a NaN truth is defined and spoils the score, as it should
    ratio = torch.where(defined, (error / torch.where(defined, truth, 1.0)).sqrt(), 0.0)
    return {
        "relative_sum": ratio.sum(0),
        "relative_count": defined.to(torch.float64).sum(0),
        "relative_missed": torch.where(defined, 0.0, error).sum(0),
    }


def relative_means(totals: Totals) -> tuple[Tensor, Tensor]:
    """The mean for each field `(1 + time, channel)` and for all fields together `(1 + time)`.

    Where the truth is zero in all samples the score is 0 if the predictions are zero too, else 1: all of
    the prediction is error.
    """
    parts = (totals["relative_sum"], totals["relative_count"], totals["relative_missed"])
    return _mean(*parts), _mean(*(part.sum(-1) for part in parts))


def _mean(total: Tensor, count: Tensor, missed: Tensor) -> Tensor:
    nothing_to_compare = torch.where(missed == 0, 0.0, torch.where(missed.isnan(), torch.nan, 1.0))
    # A prediction that is not a number is never hidden, also where its sample is not counted.
    spoiled = torch.where(missed.isnan(), torch.nan, 0.0)
    return torch.where(count > 0, total / count.clamp_min(1.0), nothing_to_compare) + spoiled
