"""The two conventions: how errors of frames become scores, and how the sums of a stream are kept.

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

from collections.abc import Mapping

import torch

from spectrakan.errors import ConfigError
from spectrakan.metrics.frame_errors import FrameErrors, with_whole
from spectrakan.metrics.scores import Scores, Totals, accumulate, collect_scores, relative_means, relative_totals
from spectrakan.metrics.spectral import BANDS, band_means


class ExactReduction:
    """Sums of the samples' scores, of whole trajectories and of single frames."""

    signed = True

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

    def merge(self, counts: Mapping[str, int], sums: Mapping[str, Totals]) -> None:
        """Add the counts and sums of another stream."""
        self.samples += counts["samples"]
        accumulate(self.totals, sums["totals"])

    def result(self) -> Scores:
        """The scores of all samples."""
        means = {name: self.totals[name] / self.samples for name in ("rmse", "crmse", "brmse", *BANDS)}
        relative, pooled_relative = relative_means(self.totals)
        largest = self.totals["largest"]
        fields = means | {"max_error": largest, "nrmse": relative, "relative_l2": relative}
        pooled = {name: mean.mean(-1) for name, mean in means.items()}
        pooled |= {"max_error": largest.amax(-1), "nrmse": pooled_relative, "relative_l2": pooled_relative}
        return collect_scores(fields, pooled, self.samples)


class PDEBenchReduction:
    """Scores of the complete mini-batches, and sums of the incomplete last one."""

    signed = False

    def __init__(self, batch_size: int, space_dims: int) -> None:
        self.batch_size = batch_size
        self.space_dims = space_dims
        self.samples, self.batches, self.filled = 0, 0, 0
        self.open: Totals = {}
        self.totals: Totals = {}
        self.relative: Totals = {}

    def add(self, errors: FrameErrors) -> None:
        """Add samples, in the order of the test set."""
        samples = errors.error.shape[0]
        self.samples += samples
        accumulate(self.relative, relative_totals(errors))
        parts, first = _sample_parts(errors), 0
        while first < samples:
            taken = min(self.batch_size - self.filled, samples - first)
            rows = {name: part[first : first + taken] for name, part in parts.items()}
            accumulate(
                self.open, {name: row.amax(0) if name == "largest" else row.sum(0) for name, row in rows.items()}
            )
            self.filled, first = self.filled + taken, first + taken
            if self.filled == self.batch_size:
                accumulate(self.totals, _batch_scores(self.open, self.filled))
                self.open, self.filled, self.batches = {}, 0, self.batches + 1

    def merge(self, counts: Mapping[str, int], sums: Mapping[str, Totals]) -> None:
        """Add the counts and sums of another stream; its samples follow those of this one."""
        if self.filled and counts["samples"]:
            raise ConfigError(
                f"the last mini-batch holds {self.filled} of {self.batch_size} samples, so nothing can "
                "follow it; give each process a multiple of batch_size samples, and the last one the rest"
            )
        for name in ("samples", "batches", "filled"):
            setattr(self, name, getattr(self, name) + counts[name])
        for name in ("open", "totals", "relative"):
            accumulate(getattr(self, name), sums[name])

    def result(self) -> Scores:
        """The scores of all samples; an incomplete mini-batch counts like a full one."""
        totals, batches = dict(self.totals), self.batches
        if self.filled:
            accumulate(totals, _batch_scores(self.open, self.filled))
            batches += 1
        frames = {name: total / batches for name, total in totals.items()}
        joint = frames.pop("joint_boundary")
        fields = {name: torch.cat([score.mean(0, keepdim=True), score]) for name, score in frames.items()}
        pooled = {name: score.mean(-1) for name, score in fields.items()}
        if self.space_dims == 3:
            pooled["brmse"] = torch.cat([joint.mean(0, keepdim=True), joint])
        fields["relative_l2"], pooled["relative_l2"] = relative_means(self.relative)
        return collect_scores(fields, pooled, self.samples)


def _sample_parts(errors: FrameErrors) -> Totals:
    """Quantities that are averaged over the samples of a mini-batch, `(B, T, C)`; shells `(B, T, S, C)`."""
    return {
        "rmse": errors.error.sqrt(),
        # As published: no guard, so a frame whose truth is zero makes this infinite or NaN.
        "nrmse": errors.error.sqrt() / errors.truth.sqrt(),
        "brmse": errors.boundary.sqrt(),
        "joint_boundary": errors.boundary.sum(-1).sqrt(),
        "squared_bias": errors.bias.square(),
        "shells": errors.shells,
        "largest": errors.largest,
    }


def _batch_scores(sums: Totals, samples: int) -> Totals:
    """Scores of a mini-batch from its sums, `(T, C)`."""
    scores = {name: sums[name] / samples for name in ("rmse", "nrmse", "brmse", "joint_boundary")}
    scores |= {"max_error": sums["largest"], "crmse": (sums["squared_bias"] / samples).sqrt()}
    return scores | band_means((sums["shells"] / samples).sqrt())
