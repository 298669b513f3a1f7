"""Error bands by split-conformal prediction, from trajectories that nothing else has used.

With n calibration trajectories of scores r_1 .. r_n and k = ceil((n + 1) c), the k-th smallest score q covers
the score of a new trajectory with probability at least c (and at most c + 1/(n + 1) without ties), if the new
one could have changed places with any of the n. Nothing is assumed of the model.

    per="cell"        r_i = |P - T| in each cell, frame and field on its own: each cell is covered with
                      probability c, a whole trajectory with much less
    per="trajectory"  r_i = max_{t,x,field} |P - T| / scale: all cells of a trajectory at once
"""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from spectrakan.errors import ConfigError, ShapeError, nearest
from spectrakan.metrics.shapes import Fields, as_float64, check_fields, check_pair

KINDS = ("cell", "trajectory")


class BandWarning(UserWarning):
    """The bands are used where nothing is promised of them."""


@dataclass(frozen=True)
class Coverage:
    """How often the truth lay inside, beside what was promised."""

    measured: float
    promised: float | None
    """None where calibration and test trajectories are not exchangeable."""
    standard_error: float
    """sqrt(a (1 - a) (1/n_cal + 1/n_test)) with a the asked coverage: chance of both splits."""
    num_calibration: int
    num_test: int

    def kept(self, errors: float = 2.0) -> bool:
        """Whether a promise was made and the measured coverage is within so many standard errors of it."""
        return self.promised is not None and abs(self.measured - self.promised) <= errors * self.standard_error

    def to_json(self) -> dict[str, Any]:
        """Plain values for a record."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Bands:
    """Half-widths `(time, *space, channel)` in physical units around a prediction."""

    half_width: Tensor
    per: str
    coverage: float
    """Share that was asked for."""
    num_calibration: int
    time_ordered: bool = False

    def interval(self, pred: Fields) -> tuple[Tensor, Tensor]:
        """Lower and upper end of the band around predictions `(B, T, *space, C)`."""
        values = as_float64(pred)
        width = self._width_on(tuple(values.shape)).to(values.device)
        return values - width, values + width

    def measure(self, pred: Fields, target: Fields) -> Coverage:
        """Share of cells (or of whole trajectories) of held-out samples that lie inside; NaN lies outside."""
        check_pair(pred.shape, target.shape)
        other_grid = tuple(pred.shape[2:-1]) != tuple(self.half_width.shape[1:-1])
        low, high = self.interval(pred)
        true = as_float64(target).to(low.device)
        inside = (low <= true) & (true <= high)
        if self.per == "trajectory":
            inside = inside.flatten(1).all(1)
        samples = int(pred.shape[0])
        if not samples:
            raise ShapeError("coverage needs at least one held-out trajectory, got none")
        spread = self.coverage * (1 - self.coverage) * (1 / self.num_calibration + 1 / samples)
        return Coverage(
            measured=float(inside.to(torch.float64).mean()),
            promised=None if other_grid or self.time_ordered else self.coverage,
            standard_error=math.sqrt(spread),
            num_calibration=self.num_calibration,
            num_test=samples,
        )

    def _width_on(self, shape: tuple[int, ...]) -> Tensor:
        check_fields("prediction", shape)
        width = self.half_width
        if len(shape) != width.ndim + 1 or (shape[1], shape[-1]) != (width.shape[0], width.shape[-1]):
            raise ShapeError(
                f"the bands are for (time, *space, channel) = {tuple(width.shape)}, got {shape[1:]}; "
                "frames, fields and number of space axes must agree"
            )
        if self.time_ordered:
            warnings.warn(
                "calibration and test trajectories are split by time, so they are not exchangeable: "
                "the bands carry no promise of coverage",
                BandWarning,
                stacklevel=3,
            )
        if shape[2:-1] == tuple(width.shape[1:-1]):
            return width
        warnings.warn(
            f"bands calibrated on {tuple(width.shape[1:-1])} cells are interpolated to {shape[2:-1]}: errors "
            "differ between resolutions, so they carry no promise of coverage; calibrate at this resolution",
            BandWarning,
            stacklevel=3,
        )
        mode = ("linear", "bilinear", "trilinear")[width.ndim - 3]
        fine = interpolate(width.movedim(-1, 1), size=shape[2:-1], mode=mode, align_corners=False)
        return fine.movedim(1, -1)


def calibrate_bands(
    pred: Fields,
    target: Fields,
    *,
    coverage: float = 0.9,
    per: str = "cell",
    scale: Tensor | None = None,
    time_ordered: bool = False,
) -> Bands:
    """Bands from predictions and truths of a calibration split `(trajectories, time, *space, channel)`.

    The split must be whole trajectories used for nothing else: not training, not the choice of a checkpoint.
    `scale`, `(time, *space, channel)` or broadcast to it, shapes the bands of `per="trajectory"` (fields of
    different units need it): take it from another split, see `residual_scale`. Say `time_ordered` where the
    split is by date rather than at random.

    >>> truth = torch.zeros(9, 1, 4, 1)
    >>> errors = torch.arange(1.0, 10.0).reshape(9, 1, 1, 1).expand(9, 1, 4, 1)
    >>> calibrate_bands(truth + errors, truth, coverage=0.8).half_width.flatten().tolist()
    [8.0, 8.0, 8.0, 8.0]
    """
    check_fields("prediction", pred.shape)
    check_pair(pred.shape, target.shape)
    if per not in KINDS:
        raise ConfigError(f"unknown kind of band '{per}'{nearest(per, KINDS)}")
    true = as_float64(target)
    residual = (as_float64(pred).to(true.device) - true).abs()
    residual = residual.nan_to_num(nan=torch.inf, posinf=torch.inf)  # a failed rollout is the worst error
    rank = _rank(residual.shape[0], coverage)
    if per == "cell":
        width = residual.kthvalue(rank, dim=0).values
    else:
        shape = tuple(residual.shape[1:])
        spread = _checked_scale(scale, shape).to(residual.device)
        width = (residual / spread).flatten(1).amax(1).kthvalue(rank).values * spread
    return Bands(width.cpu(), per, coverage, int(residual.shape[0]), time_ordered)


def residual_scale(pred: Fields, target: Fields) -> Tensor:
    """Root mean square error of each frame and field over a split, `(time, 1, .., channel)`, never zero.

    It shapes `per="trajectory"` bands: wide where the model usually errs. The split must not be the
    calibration split, or the promise is lost.
    """
    check_fields("prediction", pred.shape)
    check_pair(pred.shape, target.shape)
    true = as_float64(target)
    square = (as_float64(pred).to(true.device) - true).square()
    axes = [0, *range(2, square.ndim - 1)]
    rms = square.mean(axes, keepdim=True)[0].sqrt().cpu()
    return rms.clamp_min(max(float(rms.max()) * 1e-12, torch.finfo(torch.float64).tiny))


def _rank(count: int, coverage: float) -> int:
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


def _checked_scale(scale: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    if scale is None:
        return torch.ones(shape, dtype=torch.float64)
    try:
        full = as_float64(scale).expand(shape)
    except RuntimeError:
        raise ShapeError(f"the scale {tuple(scale.shape)} does not broadcast to {shape}") from None
    if not bool(((full > 0) & full.isfinite()).all()):
        raise ShapeError("the scale of a band must be positive and finite everywhere")
    return full
