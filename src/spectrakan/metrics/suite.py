"""All metrics of a prediction at once, from arrays or from a stream."""

from __future__ import annotations

from typing import Any

import torch

from spectrakan.errors import ConfigError, ShapeError, nearest
from spectrakan.fields import Grid
from spectrakan.metrics.frame_errors import frame_errors
from spectrakan.metrics.scores import ExactReduction, PDEBenchReduction, Scores
from spectrakan.metrics.shapes import Fields, cell_volumes, check_fields, check_pair, paired_blocks

CONVENTIONS = ("exact", "pdebench")


def evaluate_fields(
    pred: Fields,
    target: Fields,
    *,
    convention: str = "exact",
    batch_size: int | None = None,
    grid: Grid | None = None,
) -> dict[str, float]:
    """The nine scores of predicted frames `(batch, time, *space, channel)` in physical units.

    `convention="exact"` does not depend on batches and weighs cells by `grid.volumes()`; `"pdebench"` follows
    PDEBench for test batches of `batch_size` samples, with all cells equal. Give predicted frames only: a
    given initial frame has no error and makes every score too small.

    >>> truth = torch.ones(2, 3, 16, 1)
    >>> scores = evaluate_fields(truth + 0.5, truth)
    >>> scores["rmse"], scores["max_error"], scores["frmse_low"]
    (0.5, 0.5, 0.125)
    """
    return score_fields(pred, target, convention=convention, batch_size=batch_size, grid=grid).reduced


def score_fields(
    pred: Fields,
    target: Fields,
    *,
    convention: str = "exact",
    batch_size: int | None = None,
    grid: Grid | None = None,
) -> Scores:
    """As `evaluate_fields`, with the scores of each field and each frame beside the reduced ones."""
    accumulator = MetricAccumulator(convention, batch_size=batch_size, grid=grid)
    accumulator.update(pred, target)
    return accumulator.result()


class MetricAccumulator:
    """The same scores from a stream of batches, for test sets larger than memory or spread over processes.

    Only sums are kept, so `result` may be called at any time, and `merge` adds another process's stream.
    In the PDEBench convention the samples must come in the order of the test set; the mini-batches are cut
    anew from the stream, whatever the sizes of the updates.

    >>> stream = MetricAccumulator()
    >>> for bias in (1.0, 3.0):
    ...     stream.update(torch.full((4, 1, 8, 1), bias), torch.zeros(4, 1, 8, 1))
    >>> stream.result().reduced["rmse"]
    2.0
    """

    def __init__(self, convention: str = "exact", *, batch_size: int | None = None, grid: Grid | None = None) -> None:
        if convention not in CONVENTIONS:
            raise ConfigError(f"unknown convention '{convention}'{nearest(convention, CONVENTIONS)}")
        if convention == "pdebench" and (batch_size is None or batch_size < 1):
            raise ConfigError(
                "the pdebench convention depends on the size of the test batches: give batch_size "
                f"(PDEBench used 5 to 100), got {batch_size}"
            )
        self.convention = convention
        self.batch_size = batch_size if convention == "pdebench" else None
        self.grid = grid
        self._shape: tuple[int, ...] | None = None
        self._reduction: ExactReduction | PDEBenchReduction | None = None

    @property
    def num_samples(self) -> int:
        """Number of samples added."""
        return self._reduction.samples if self._reduction else 0

    @torch.no_grad()
    def update(self, pred: Fields, target: Fields) -> None:
        """Add predictions and truths of some samples, `(batch, time, *space, channel)` each."""
        check_fields("prediction", pred.shape, self.grid)
        check_pair(pred.shape, target.shape)
        shape = tuple(int(size) for size in pred.shape[1:])
        if self._shape not in (None, shape):
            raise ShapeError(f"this stream holds samples of shape {self._shape}, got {shape}")
        if not pred.shape[0]:
            return
        reduction = self._start(shape)
        weights = self.grid if self.convention == "exact" else None
        volumes = cell_volumes(weights, shape[1:-1])
        for predicted, true in paired_blocks(pred, target):
            reduction.add(frame_errors(predicted, true, volumes, reduction.signed))

    def merge(self, other: MetricAccumulator) -> None:
        """Add the samples of another stream; in the PDEBench convention they follow those of this one."""
        theirs = other._kind()
        if bad := [name for name, value in self._kind().items() if theirs[name] != value]:
            raise ConfigError(f"streams of different {', '.join(bad)} cannot be merged; give both the same")
        if other._shape is None:
            return
        if self._shape not in (None, other._shape):
            raise ShapeError(f"streams of samples {self._shape} and {other._shape} cannot be merged")
        self._start(other._shape).merge(other._reduction)

    def result(self) -> Scores:
        """The scores of all samples added so far."""
        if self._reduction is None:
            raise ShapeError("no sample was given, so there is nothing to score; call update first")
        return self._reduction.result()

    def _kind(self) -> dict[str, Any]:
        """What streams must have in common to be merged: `weights` are None where all cells count the same."""
        weighted = self.convention == "exact" and self.grid is not None and not self.grid.is_uniform()
        weights = [weight.tolist() for weight in self.grid.weights] if weighted and self.grid is not None else None
        return {"convention": self.convention, "batch_size": self.batch_size, "weights": weights}

    def _start(self, shape: tuple[int, ...]) -> ExactReduction | PDEBenchReduction:
        if self._reduction is None:
            self._shape = shape
            self._reduction = (
                ExactReduction() if self.batch_size is None else PDEBenchReduction(self.batch_size, len(shape) - 2)
            )
        return self._reduction
