"""A rollout against time: errors frame by frame, how long they stay small, spectra, and conserved totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import DEFAULT, EvaluationSettings, Samples, heading, predicted_batches
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.operators import as_operator
from spectrakan.fields import Grid, Trajectories
from spectrakan.metrics import MetricAccumulator, drift, energy_spectrum, relative_error, time_to_threshold
from spectrakan.metrics.scores import Totals, accumulate
from spectrakan.pde.gas_scheme import to_conserved
from spectrakan.runs.record import as_json

THRESHOLDS = (0.05, 0.1, 0.2)
"""Relative L2 errors whose first crossing is timed."""
CURVES = ("rmse", "relative_l2")


def profile(
    model: nn.Module,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    samples: Samples = None,
    thresholds: Sequence[float] = THRESHOLDS,
    settings: EvaluationSettings = DEFAULT,
) -> dict[str, Any]:
    """One rollout of each sample, analysed frame by frame, as plain JSON values in physical units.

    `times`       of the predicted frames; `lead_times` count from the last given one
    `rmse`, `relative_l2`  for `all` fields and each by name, one number a frame
    `thresholds`  for each of `thresholds`, when the relative L2 error of each sample exceeds it (None: never)
    `spectra`     energy by shell of wavenumbers of truth, prediction and error at the first, the middle and
                  the last predicted frame
    `drift`       change of the domain's mean of conserved quantities, in truth and prediction

    Every frame counts here, also where a problem names times to score. Only sums and one number for each sample and
    frame are kept, so the set may be larger than memory.
    """
    operator = as_operator(model, trajectories)
    frames = scored_frames(trajectories, operator.signature.history, horizon).horizon
    first = 0 if trajectories.steady else operator.signature.history
    start = 0.0 if trajectories.steady else float(trajectories.times[first - 1])
    times = [float(time) for time in trajectories.times[first : first + frames]]
    ahead = [time - start for time in times]
    names = [spec.name for spec in trajectories.fields]
    chosen = sorted({0, frames // 2, frames - 1})
    growth = ErrorGrowth(names, trajectories.grid)
    energies: Totals = {}
    squares: Totals = {}
    for window, pred in predicted_batches(operator, trajectories, samples, frames, settings):
        growth.add(pred, window.targets)
        accumulate(energies, _energies(pred[:, chosen], window.targets[:, chosen], trajectories.grid))
        if not trajectories.steady:
            accumulate(squares, _squared_drifts(window.inputs[:, -1], pred, window.targets, trajectories))
    count = growth.num_samples
    result = heading(operator, trajectories, count, frames) | {"times": times, "lead_times": ahead}
    result |= growth.by_frame()
    result["thresholds"] = None if trajectories.steady else growth.passing_times(ahead, thresholds)
    shells = [*range(energies["truth"].shape[1])]
    result["spectra"] = {"frames": chosen, "times": [times[frame] for frame in chosen], "shells": shells} | {
        kind: {name: total[..., at] / count for at, name in enumerate(names)} for kind, total in energies.items()
    }
    result["drift"] = None if trajectories.steady else _drift(squares, count, _conserved(trajectories)[0])
    return as_json(result)


class ErrorGrowth:
    """Errors by frame from a stream of batches `(batch, time, *space, channel)`.

    >>> growth = ErrorGrowth(["u"], Grid.uniform((4,)))
    >>> truth = torch.ones(1, 2, 4, 1)
    >>> growth.add(truth + torch.tensor([0.1, 0.3]).reshape(1, 2, 1, 1), truth)
    >>> [round(error, 6) for error in growth.by_frame()["relative_l2"]["all"]]
    [0.1, 0.3]
    """

    def __init__(self, names: Sequence[str], grid: Grid) -> None:
        self.names, self.grid = list(names), grid
        self._scores = MetricAccumulator(grid=grid)
        self._relative: list[Tensor] = []

    @property
    def num_samples(self) -> int:
        """Number of samples added."""
        return self._scores.num_samples

    def add(self, pred: Tensor, target: Tensor) -> None:
        """Add a batch."""
        self._scores.update(pred, target)
        # NaN marks a field whose truth is zero, which the mean skips; a prediction that is not finite stays NaN.
        error = relative_error(pred, target, self.grid).nanmean(-1)
        self._relative.append(error.masked_fill(~pred.isfinite().flatten(2).all(-1), torch.nan))

    def by_frame(self) -> dict[str, dict[str, list[float]]]:
        """Scores of each frame, in the exact convention: for `all` fields, and for each by name."""
        found = self._scores.result()
        return {
            metric: {
                "all": found.per_frame[metric].tolist(),
                **dict(zip(self.names, found.per_frame_and_field[metric].T.tolist(), strict=True)),
            }
            for metric in CURVES
        }

    def sample_errors(self) -> Tensor:
        """Relative L2 error of each sample and frame `(samples, time)`: the mean over fields whose truth is not zero.

        NaN where the prediction is not finite.
        """
        return torch.cat(self._relative)

    def passing_times(self, lead_times: Sequence[float], thresholds: Sequence[float]) -> list[dict[str, Any]]:
        """When each sample's error exceeds each threshold, from no error at the last given frame (lead time 0) on.

        Linear between frames; infinity where it never does, which the median counts as later than all others.
        """
        if bad := [value for value in thresholds if not value > 0]:
            raise ConfigError(f"thresholds of an error must be above 0, got {bad}")
        errors = self.sample_errors()
        known = torch.cat([errors.new_zeros(len(errors), 1), errors], dim=1)
        passed = {threshold: time_to_threshold(known, [0.0, *lead_times], threshold) for threshold in thresholds}
        return [
            {
                "relative_l2": threshold,
                "median_time": float(times.quantile(0.5, interpolation="higher")),
                "never": int(times.isinf().sum()),
                "times": times.tolist(),
            }
            for threshold, times in passed.items()
        ]


def _energies(pred: Tensor, target: Tensor, grid: Grid) -> Totals:
    """Energy E_s = Σ_{s <= |k| < s + 1} |F_k|² of each shell, summed over the batch: `(time, shell, channel)`."""
    predicted, true = pred.to(torch.float64), target.to(torch.float64)
    parts = {"truth": true, "prediction": predicted, "error": predicted - true}
    return {name: energy_spectrum(part, grid).sum(0) for name, part in parts.items()}


Constants = Mapping[str, float]
Densities = Callable[[Tensor, Constants], Tensor]


def _gas(fields: Tensor, constants: Constants) -> Tensor:
    return to_conserved(fields.movedim(-1, 0), constants.get("gamma", 5.0 / 3.0)).movedim(0, -1)


def _water(fields: Tensor, _: Constants) -> Tensor:
    return torch.cat([fields[..., :1], fields[..., :1] * fields[..., 1:]], dim=-1)


CONSERVED: dict[str, tuple[tuple[str, ...], Densities]] = {
    "cns1d": (("mass", "momentum", "energy"), _gas),
    "shallow_water2d": (("mass", "momentum_x", "momentum_y"), _water),
    "droplet2d": (("mass",), lambda fields, _: fields[..., :1]),
}
"""By problem of three fields: names of the quantities and their densities `(..., quantity)`.

cns1d             mass rho, momentum rho v, energy p / (gamma - 1) + rho v² / 2
shallow_water2d   mass h, momentum h v (until waves reach the open sides)
droplet2d         mass rho (walls take up momentum)
others            the fields themselves, whether conserved or not
"""


def _conserved(trajectories: Trajectories) -> tuple[tuple[str, ...], Densities]:
    own = tuple(spec.name for spec in trajectories.fields)
    return CONSERVED.get(trajectories.name if len(own) == 3 else "", (own, lambda fields, _: fields))


def _squared_drifts(start: Tensor, pred: Tensor, target: Tensor, trajectories: Trajectories) -> Totals:
    """Squares of <q>(t) - <q>(last given frame) and of <q> at that frame, summed over the batch."""
    _, densities = _conserved(trajectories)
    first, true, predicted = (
        densities(fields.to(torch.float64), trajectories.constants) for fields in (start, target, pred)
    )
    moved = {
        "truth": drift(true, first, trajectories.grid),
        "prediction": drift(predicted, first, trajectories.grid),
        "start": drift(first[:, None], torch.zeros_like(first), trajectories.grid),
    }
    return {name: change.square().sum(0) for name, change in moved.items()}


def _drift(squares: Totals, count: int, names: Sequence[str]) -> dict[str, Any]:
    """By quantity: the root mean square over samples of its mean at the `start`, and of its drift at each frame.

    The truth's own drift is given beside the prediction's: where the truth drifts too, nothing is conserved.
    """
    roots = {kind: (total / count).sqrt().T for kind, total in squares.items()}
    by_name = {kind: dict(zip(names, root.tolist(), strict=True)) for kind, root in roots.items()}
    return {"quantities": list(names), **by_name, "start": {name: by_name["start"][name][0] for name in names}}
