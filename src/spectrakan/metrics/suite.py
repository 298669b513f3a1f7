"""All metrics of a prediction at once, from arrays or from a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from spectrakan.errors import ConfigError, DataFormatError, ShapeError, nearest
from spectrakan.fields import Grid
from spectrakan.metrics.conventions import ExactReduction, PDEBenchReduction
from spectrakan.metrics.frame_errors import frame_errors
from spectrakan.metrics.scores import Scores, pack_totals, unpack_totals
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

    Only sums are kept, so `result` may be called at any time, `merge` joins streams and `state` is plain JSON.
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
        if other is self:
            raise ConfigError("a stream cannot be merged into itself: its samples would count twice")
        mine, its = (self.convention, self.batch_size), (other.convention, other.batch_size)
        if mine != its:
            raise ConfigError(f"streams of different conventions cannot be merged: {mine} and {its}")
        if self._weights() != other._weights():
            raise ConfigError("streams on grids with different cell volumes cannot be merged")
        if other._shape is None or other._reduction is None:
            return
        if self._shape not in (None, other._shape):
            raise ShapeError(f"streams of samples {self._shape} and {other._shape} cannot be merged")
        merge: Callable[[Any], None] = self._start(other._shape).merge  # of the same convention, hence of one class
        merge(other._reduction)

    def result(self) -> Scores:
        """The scores of all samples added so far."""
        if self._reduction is None:
            raise ShapeError("no sample was given, so there is nothing to score; call update first")
        return self._reduction.result()

    def state(self) -> dict[str, Any]:
        """The sums as plain JSON values; `restore` rebuilds the stream, with the same grid."""
        reduction = self._reduction
        content: dict[str, Any] = {
            "convention": self.convention,
            "batch_size": self.batch_size,
            "shape": None if self._shape is None else list(self._shape),
            "weights": self._weights(),
        }
        if reduction is not None:
            for name, value in vars(reduction).items():
                content[name] = pack_totals(value) if isinstance(value, dict) else value
        return content

    @classmethod
    def restore(cls, state: dict[str, Any], *, grid: Grid | None = None) -> MetricAccumulator:
        """A stream that continues from `state`."""
        try:
            made = cls(state["convention"], batch_size=state["batch_size"], grid=grid)
            if made._weights() != state["weights"]:
                raise ConfigError("the state was taken on a grid with other cell volumes; restore with that one")
            if state["shape"] is None:
                return made
            shape = tuple(int(size) for size in state["shape"])
            check_fields("the state's samples", (1, *shape), grid)
            reduction = made._start(shape)
            for name, value in vars(reduction).items():
                setattr(reduction, name, unpack_totals(state[name]) if isinstance(value, dict) else int(state[name]))
        except (KeyError, TypeError, ValueError, RuntimeError) as problem:
            raise DataFormatError(f"not the state of a metric stream: {problem!r}") from None
        return made

    def _start(self, shape: tuple[int, ...]) -> ExactReduction | PDEBenchReduction:
        if self._reduction is None:
            self._shape = shape
            self._reduction = (
                ExactReduction() if self.batch_size is None else PDEBenchReduction(self.batch_size, len(shape) - 2)
            )
        return self._reduction

    def _weights(self) -> list[list[float]] | None:
        """Shares of the cells along each axis; None where all cells count the same."""
        if self.convention != "exact" or self.grid is None or self.grid.is_uniform():
            return None
        return [weight.tolist() for weight in self.grid.weights]
