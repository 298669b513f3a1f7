"""Error bands by split-conformal prediction, from trajectories that nothing else has used.

With n calibration trajectories of scores r_1 .. r_n and k = ceil((n + 1) c), the k-th smallest score q covers
the score of a new trajectory with probability at least c (and at most c + 1/(n + 1) without ties), if the new
one is exchangeable with the n. Nothing is assumed of the model. A failed rollout (NaN) has an infinite score: it
lies outside every finite band, and inside an infinite one. The score of a trajectory is its largest error,
max_{t,x,field} |P - T| / scale, so a band covers all its cells at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spectrakan.data.split import Split
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.evaluation.batches import DEFAULT, EvaluationSettings, all_predicted, heading
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.operators import as_operator
from spectrakan.fields import Trajectories
from spectrakan.metrics.shapes import Fields, as_float64, check_pair
from spectrakan.runs.record import as_json

NO_PROMISE = "calibration and test trajectories are split by time, so coverage is not guaranteed"


@dataclass(frozen=True, eq=False)
class Bands:
    """Half-widths `(time, *space, channel)` in physical units around a prediction."""

    half_width: Tensor
    coverage: float
    """Nominal coverage."""
    num_calibration: int
    time_ordered: bool = False

    def measure(self, pred: Fields, target: Fields) -> dict[str, Any]:
        """How many held-out trajectories lie inside: `measured` beside `promised`, which is None in a split by time.

        A failed rollout lies outside, unless the band is infinite. `standard_error` is
        sqrt(c (1 - c) (1/n_cal + 1/n_test)) with c the nominal coverage: chance of both splits. `kept` says whether
        coverage is promised and the measured one is at most two standard errors below it: the promise is a lower
        bound, and perfect predictions, which are always covered, keep it.
        """
        if tuple(pred.shape[1:]) != tuple(self.half_width.shape):
            raise ShapeError(
                f"the bands are for (time, *space, channel) = {tuple(self.half_width.shape)}, got "
                f"{tuple(pred.shape[1:])}; errors differ between resolutions and horizons: calibrate bands for these"
            )
        inside = (_residual(pred, target) <= self.half_width).flatten(1).all(1)
        samples = int(pred.shape[0])
        if not samples:
            raise ShapeError("coverage needs at least one held-out trajectory, got none")
        spread = self.coverage * (1 - self.coverage) * (1 / self.num_calibration + 1 / samples)
        measured, error = float(inside.to(torch.float64).mean()), math.sqrt(spread)
        return {
            "measured": measured,
            "promised": None if self.time_ordered else self.coverage,
            "kept": not self.time_ordered and measured >= self.coverage - 2 * error,
            "standard_error": error,
            "num_calibration": self.num_calibration,
            "num_test": samples,
        }


def calibrate_bands(
    pred: Fields,
    target: Fields,
    *,
    coverage: float = 0.9,
    scale: Tensor | None = None,
    time_ordered: bool = False,
) -> Bands:
    """Bands from predictions and truths of a calibration split `(trajectories, time, *space, channel)`.

    The split must be whole trajectories used for nothing else: not training, not the choice of a checkpoint.
    `scale`, `(time, *space, channel)` or broadcast to it, shapes the bands (fields of different units need it): take
    it from another split, see `residual_scale`. `time_ordered` marks a split by date, for which no coverage is
    promised.

    >>> truth = torch.zeros(9, 1, 4, 1)
    >>> errors = torch.arange(1.0, 10.0).reshape(9, 1, 1, 1).expand(9, 1, 4, 1)
    >>> calibrate_bands(truth + errors, truth, coverage=0.8).half_width.flatten().tolist()
    [8.0, 8.0, 8.0, 8.0]
    """
    residual = _residual(pred, target)
    rank = band_rank(residual.shape[0], coverage)
    spread = torch.ones(residual.shape[1:], dtype=torch.float64)
    if scale is not None:
        try:
            spread = as_float64(scale).expand(spread.shape)
        except RuntimeError:
            raise ShapeError(f"the scale {tuple(scale.shape)} does not broadcast to {tuple(spread.shape)}") from None
    if not bool(((spread > 0) & spread.isfinite()).all()):
        raise ShapeError("the scale of a band must be positive and finite everywhere")
    width = (residual / spread).flatten(1).amax(1).kthvalue(rank).values * spread
    return Bands(width, coverage, int(residual.shape[0]), time_ordered)


def residual_scale(pred: Fields, target: Fields) -> Tensor:
    """Root mean square error of each frame and field over a split, `(time, 1, .., channel)`, never zero.

    It shapes bands: wide where errors are usually large. The split must not be the calibration
    split, or coverage is not guaranteed. Failed rollouts are left out; without any other the scale is 1.
    """
    residual = _residual(pred, target)
    residual = residual[residual.flatten(1).isfinite().all(1)]
    if not len(residual):
        return torch.ones((pred.shape[1], *[1] * (len(pred.shape) - 3), pred.shape[-1]), dtype=torch.float64)
    axes = [0, *range(2, residual.ndim - 1)]
    rms = residual.square().mean(axes, keepdim=True)[0].sqrt()
    return rms.clamp_min(max(float(rms.max()) * 1e-12, torch.finfo(torch.float64).tiny))


def band_rank(count: int, coverage: float) -> int:
    """Which of the sorted scores is the half-width: k = ceil((n + 1) c), which must not exceed n."""
    if not 0.0 < coverage < 1.0:
        raise ConfigError(f"coverage must lie between 0 and 1, got {coverage}")
    # The small number undoes rounding such as 10 * 0.7 -> 7.000000000000001.
    rank = max(1, math.ceil((count + 1) * coverage - 1e-9))
    if rank > count:
        needed = math.ceil(coverage / (1.0 - coverage) - 1e-9)
        raise ConfigError(
            f"bands of coverage {coverage} need at least {needed} calibration trajectories, got {count}"
        )
    return rank


def check_bands(split: Split, coverage: float = 0.9) -> None:
    """Refuse bands of a split whose calibration part is missing or too small for the coverage."""
    part = split.part("calibration")
    if not part:
        raise ConfigError(
            "bands need trajectories that serve nothing else, and this split has no calibration part; train with a "
            "share for it, such as data.split.train=0.6 data.split.calibration=0.2"
        )
    band_rank(len(part), coverage)


def calibrated(
    model: nn.Module,
    trajectories: Trajectories,
    split: Split,
    horizon: int | None = None,
    *,
    coverage: float = 0.9,
    time_ordered: bool = False,
    settings: EvaluationSettings = DEFAULT,
) -> Bands:
    """Bands around rollouts from the `calibration` part, which must not be used for anything else.

    They are shaped by the errors on the `validation` part (on the training part where there is
    none): a shape taken from the calibration part would void the guarantee.
    """
    check_bands(split, coverage)
    frames, _ = scored_frames(trajectories, as_operator(model, trajectories).signature.history, horizon)
    shaping = split.part("validation") or split.part("train")
    scale = residual_scale(*all_predicted(model, trajectories, shaping, frames, settings))
    pair = all_predicted(model, trajectories, split.part("calibration"), frames, settings)
    return calibrate_bands(*pair, coverage=coverage, scale=scale, time_ordered=time_ordered)


def band_coverage(
    model: nn.Module,
    bands: Bands,
    trajectories: Trajectories,
    samples: Sequence[int],
    *,
    settings: EvaluationSettings = DEFAULT,
) -> dict[str, Any]:
    """Coverage of bands on trajectories that did not calibrate them, beside the promise; and their widths.

    The entries are those of `Bands.measure`; after a split by time nothing is promised, and `warnings` says so.
    `half_width` is the mean over cells, by field and frame, in physical units.
    """
    frames = int(bands.half_width.shape[0])
    found = bands.measure(*all_predicted(model, trajectories, samples, frames, settings))
    widths = bands.half_width.flatten(1, -2).mean(1)
    return as_json(
        heading(as_operator(model, trajectories), trajectories, len(samples), frames)
        | {"coverage": bands.coverage, "warnings": [NO_PROMISE] if bands.time_ordered else []}
        | found
        | {"half_width": {spec.name: widths[:, index] for index, spec in enumerate(trajectories.fields)}}
    )


def _residual(pred: Fields, target: Fields) -> Tensor:
    """|P - T| on the CPU; infinite where a number is missing."""
    check_pair(pred.shape, target.shape)
    residual = (as_float64(pred).cpu() - as_float64(target).cpu()).abs()
    return residual.nan_to_num(nan=torch.inf, posinf=torch.inf)
