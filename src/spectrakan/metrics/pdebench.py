"""PDEBench's reductions, for numbers that are laid beside published ones.

Samples come in consecutive mini-batches of a stated size, the last may be smaller. In each mini-batch, for
frame t and field c, with N equal cells, mean_b and max_b over the samples of the mini-batch:

    rmse, nrmse, brmse   mean_b sqrt(.), of one frame each
    max_error            max_b max_x |e|
    crmse                sqrt mean_b (mean_x e)²
    frmse                mean over the shells of a band of sqrt mean_b S_s, S_s over non-negative wavenumbers

then the mean over frames and fields, then over mini-batches, each counting the same. In 3D the boundary
squares of all fields are added before the root. `relative_l2`, which PDEBench does not have, is as in the
exact convention with equal cells.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.metrics.moments import Moments
from spectrakan.metrics.relative import relative_means, relative_totals
from spectrakan.metrics.scores import Scores, Totals, collect_scores
from spectrakan.metrics.spectral import BANDS, band_means

_MEANS = ("rmse", "nrmse", "brmse", "joint_boundary")


class PDEBenchReduction:
    """Scores of the finished mini-batches, and sums of the one that is being filled."""

    signed = False

    def __init__(self, batch_size: int, space_dims: int) -> None:
        self.batch_size = batch_size
        self.space_dims = space_dims
        self.samples = 0
        self.batches = 0
        self.filled = 0
        self.open: Totals = {}
        self.totals: Totals = {}
        self.relative: Totals = {}

    def add(self, moments: Moments) -> None:
        """Take in samples, in the order of the test set."""
        samples = moments.error.shape[0]
        self.samples += samples
        _accumulate(self.relative, relative_totals(moments))
        parts = _sample_parts(moments)
        head = min(samples, (self.batch_size - self.filled) % self.batch_size)
        whole = (samples - head) // self.batch_size * self.batch_size
        self._fill({name: part[:head] for name, part in parts.items()}, head)
        if whole:
            batches = whole // self.batch_size
            grouped = {
                name: part[head : head + whole].reshape(batches, self.batch_size, *part.shape[1:])
                for name, part in parts.items()
            }
            self._close(_sum_samples(grouped, 1), self.batch_size, batches)
        rest = {name: part[head + whole :] for name, part in parts.items()}
        self._fill(rest, samples - head - whole)

    def merge(self, other: PDEBenchReduction) -> None:
        """Take in what another stream has seen; its samples follow those of this one."""
        if self.filled and other.samples:
            raise ConfigError(
                f"the last mini-batch holds {self.filled} of {self.batch_size} samples, so nothing can "
                "follow it; give each process a multiple of batch_size samples, and the last one the rest"
            )
        self.samples += other.samples
        self.batches += other.batches
        self.filled = other.filled if other.samples else self.filled
        self.open = dict(other.open) if other.samples else self.open
        _accumulate(self.totals, other.totals)
        _accumulate(self.relative, other.relative)

    def result(self) -> Scores:
        """The scores of all samples seen; a started mini-batch counts like a full one."""
        totals, batches = dict(self.totals), self.batches
        if self.filled:
            last = _batch_scores({name: part[None] for name, part in self.open.items()}, self.filled)
            _accumulate(totals, {name: score.sum(0) for name, score in last.items()})
            batches += 1
        frames = {name: total / batches for name, total in totals.items()}
        joint = frames.pop("joint_boundary")
        fields = {name: torch.cat([score.mean(0, keepdim=True), score]) for name, score in frames.items()}
        pooled = {name: score.mean(-1) for name, score in fields.items()}
        if self.space_dims == 3:
            pooled["brmse"] = torch.cat([joint.mean(0, keepdim=True), joint])
        fields["relative_l2"], pooled["relative_l2"] = relative_means(self.relative)
        return collect_scores(fields, pooled, self.samples)

    def _fill(self, parts: Totals, samples: int) -> None:
        if not samples:
            return
        new = _sum_samples(parts, 0)
        if self.open:
            new["largest"] = torch.maximum(new["largest"], self.open.pop("largest"))
            _accumulate(new, self.open)
        self.open, self.filled = new, self.filled + samples
        if self.filled == self.batch_size:
            self._close({name: part[None] for name, part in new.items()}, self.batch_size, 1)
            self.open, self.filled = {}, 0

    def _close(self, sums: Totals, samples: int, batches: int) -> None:
        scores = _batch_scores(sums, samples)
        _accumulate(self.totals, {name: score.sum(0) for name, score in scores.items()})
        self.batches += batches


def _sample_parts(moments: Moments) -> Totals:
    """What is averaged over the samples of a mini-batch, `(B, T, C)`; shells `(B, T, S, C)`."""
    return {
        "rmse": moments.error.sqrt(),
        # As published: no guard, so a frame whose truth is zero makes this infinite or NaN.
        "nrmse": moments.error.sqrt() / moments.truth.sqrt(),
        "brmse": moments.boundary.sqrt(),
        "joint_boundary": moments.boundary.sum(-1).sqrt(),
        "squared_bias": moments.bias.square(),
        "shells": moments.shells,
        "largest": moments.largest,
    }


def _sum_samples(parts: Totals, dim: int) -> Totals:
    return {name: part.amax(dim) if name == "largest" else part.sum(dim) for name, part in parts.items()}


def _batch_scores(sums: Totals, samples: int) -> Totals:
    """Scores of mini-batches of equal size from their sums, `(batches, T, C)`."""
    scores: dict[str, Tensor] = {name: sums[name] / samples for name in _MEANS}
    scores["max_error"] = sums["largest"]
    scores["crmse"] = (sums["squared_bias"] / samples).sqrt()
    bands = band_means((sums["shells"] / samples).sqrt())
    return scores | {name: bands[name] for name in BANDS}


def _accumulate(totals: Totals, new: Totals) -> None:
    for name, value in new.items():
        totals[name] = totals[name] + value if name in totals else value
