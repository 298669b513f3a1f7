"""The default convention: each sample and field has a score, and scores are averaged.

For sample b and field c, cell volumes w (Σ_x w = 1), error e = P - T and <.>_t the mean over frames:

    rmse       sqrt <Σ_x w e²>_t
    nrmse      sqrt( <Σ_x w e²>_t / <Σ_x w T²>_t ), which is relative_l2
    max_error  max_{t,x} |e|, and the largest over samples and fields
    crmse      sqrt <(Σ_x w e)²>_t
    brmse      sqrt <mean of e² over the boundary cells>_t
    frmse      mean over the shells s of a band of sqrt <S_s>_t

The answer does not depend on how samples are cut into batches.
"""

from __future__ import annotations

import torch

from spectrakan.metrics.moments import Moments
from spectrakan.metrics.relative import relative_means, relative_totals
from spectrakan.metrics.scores import Scores, Totals, collect_scores, with_whole
from spectrakan.metrics.spectral import band_means


class ExactReduction:
    """Sums of the samples' scores, of whole trajectories and of single frames."""

    signed = True

    def __init__(self) -> None:
        self.totals: Totals = {}
        self.samples = 0

    def add(self, moments: Moments) -> None:
        """Take in a batch."""
        scores = {
            "rmse": with_whole(moments.error).sqrt(),
            "crmse": with_whole(moments.bias.square()).sqrt(),
            "brmse": with_whole(moments.boundary).sqrt(),
            **band_means(with_whole(moments.shells).sqrt()),
        }
        new = {name: score.sum(0) for name, score in scores.items()} | relative_totals(moments)
        frames = moments.largest.amax(0)
        new["max_error"] = torch.cat([frames.amax(0, keepdim=True), frames])
        self._combine(new, moments.error.shape[0])

    def merge(self, other: ExactReduction) -> None:
        """Take in what another stream has seen."""
        self._combine(other.totals, other.samples)

    def result(self) -> Scores:
        """The scores of all samples seen."""
        fields, pooled = {}, {}
        for name, total in self.totals.items():
            if name == "max_error":
                fields[name], pooled[name] = total, total.amax(-1)
            elif not name.startswith("relative_"):
                fields[name] = total / self.samples
                pooled[name] = fields[name].mean(-1)
        relative, relative_pooled = relative_means(self.totals)
        fields |= {"nrmse": relative, "relative_l2": relative}
        pooled |= {"nrmse": relative_pooled, "relative_l2": relative_pooled}
        return collect_scores(fields, pooled, self.samples)

    def _combine(self, new: Totals, samples: int) -> None:
        self.samples += samples
        for name, value in new.items():
            if name not in self.totals:
                self.totals[name] = value
            elif name == "max_error":
                self.totals[name] = torch.maximum(self.totals[name], value)
            else:
                self.totals[name] = self.totals[name] + value
