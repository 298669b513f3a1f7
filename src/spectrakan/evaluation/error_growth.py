"""Error against time: of each frame over all samples, and of each sample until it passes a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.metrics import MetricAccumulator, relative_error, time_to_threshold

CURVES = ("rmse", "relative_l2")


class ErrorGrowth:
    """Errors by frame from a stream of batches `(batch, time, *space, channel)`.

    >>> growth = ErrorGrowth(["u"], Grid.uniform((4,)))
    >>> truth = torch.ones(1, 2, 4, 1)
    >>> growth.add(truth + torch.tensor([0.1, 0.3]).reshape(1, 2, 1, 1), truth)
    >>> [round(error, 6) for error in growth.by_frame()["relative_l2"]["all"]]
    [0.1, 0.3]
    """

    def __init__(self, names: Sequence[str], grid: Grid) -> None:
        self.names = list(names)
        self.grid = grid
        self._scores = MetricAccumulator(grid=grid)
        self._relative: list[Tensor] = []

    @property
    def num_samples(self) -> int:
        """Samples seen so far."""
        return self._scores.num_samples

    def add(self, pred: Tensor, target: Tensor) -> None:
        """Take in a batch."""
        self._scores.update(pred, target)
        # NaN stands for a field whose truth is zero, which the others outvote; a broken prediction is not outvoted.
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
        """When each sample's error passed each threshold, from no error at the last given frame (lead time 0) on.

        Linear between frames; infinity where it never did. The median counts those as later than all others.
        """
        if bad := [value for value in thresholds if not value > 0]:
            raise ConfigError(f"thresholds of an error must be above 0, got {bad}")
        errors = self.sample_errors()
        known = torch.cat([errors.new_zeros(len(errors), 1), errors], dim=1)
        answers = []
        for threshold in thresholds:
            passed = time_to_threshold(known, [0.0, *lead_times], threshold)
            answers.append(
                {
                    "relative_l2": threshold,
                    "median_time": float(passed.quantile(0.5, interpolation="higher")),
                    "never": int(passed.isinf().sum()),
                    "times": passed.tolist(),
                }
            )
        return answers
