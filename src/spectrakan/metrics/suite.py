"""All metrics of a prediction at once, from arrays or from a stream."""

from __future__ import annotations

from dataclasses import fields

import torch

from spectrakan.errors import ConfigError, ShapeError, nearest
from spectrakan.fields import Grid
from spectrakan.metrics.frame_errors import FrameErrors, frame_errors
from spectrakan.metrics.scores import Scores, Tables, exact_scores, pdebench_scores, sample_tables
from spectrakan.metrics.shapes import Fields, cell_volumes, check_pair, paired_blocks

CONVENTIONS = ("exact", "pdebench")
NOTHING = "no sample was given, so there is nothing to score"


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
    if convention not in CONVENTIONS:
        raise ConfigError(f"unknown convention '{convention}'{nearest(convention, CONVENTIONS)}")
    if convention == "exact":
        accumulator = MetricAccumulator(grid)
        accumulator.update(pred, target)
        return accumulator.result()
    if batch_size is None or batch_size < 1:
        raise ConfigError(
            "the pdebench convention depends on the size of the test batches: give batch_size "
            f"(PDEBench used 5 to 100), got {batch_size}"
        )
    check_pair(pred.shape, target.shape, grid)
    volumes = cell_volumes(None, pred.shape[2:-1])
    parts = [frame_errors(*pair, volumes, signed=False) for pair in paired_blocks(pred, target)]
    if not parts:
        raise ShapeError(NOTHING)
    whole = FrameErrors(
        **{kind.name: torch.cat([getattr(each, kind.name) for each in parts]) for kind in fields(FrameErrors)}
    )
    return pdebench_scores(whole, batch_size, volumes.ndim)


class MetricAccumulator:
    """The exact scores from a stream of batches, for test sets larger than memory or spread over processes.

    Only scores of samples are kept, so `result` may be called at any time; `merge` adds another process's stream.

    >>> stream = MetricAccumulator()
    >>> for bias in (1.0, 3.0):
    ...     stream.update(torch.full((4, 1, 8, 1), bias), torch.zeros(4, 1, 8, 1))
    >>> stream.result().reduced["rmse"]
    2.0
    """

    def __init__(self, grid: Grid | None = None) -> None:
        self.grid = grid
        self._shape: tuple[int, ...] | None = None
        self._tables: list[Tables] = []

    @torch.no_grad()
    def update(self, pred: Fields, target: Fields) -> None:
        """Add predictions and truths of some samples, `(batch, time, *space, channel)` each."""
        check_pair(pred.shape, target.shape, self.grid)
        shape = tuple(int(size) for size in pred.shape[1:])
        if self._shape not in (None, shape):
            raise ShapeError(f"this stream holds samples of shape {self._shape}, got {shape}")
        self._shape = shape
        volumes = cell_volumes(self.grid, shape[1:-1])
        for predicted, true in paired_blocks(pred, target):
            self._tables.append(sample_tables(frame_errors(predicted, true, volumes, signed=True)))

    def merge(self, other: MetricAccumulator) -> None:
        """Add the samples of another stream on the same grid."""
        if other._shape is None:
            return
        mine, theirs = (cell_volumes(each.grid, other._shape[1:-1]) for each in (self, other))
        if self._shape not in (None, other._shape) or not torch.allclose(mine, theirs):
            raise ShapeError(
                f"streams of samples {self._shape} and {other._shape}, or of other cell weights, cannot be merged"
            )
        self._shape = other._shape
        self._tables += other._tables

    def result(self) -> Scores:
        """The scores of all samples added so far."""
        if not self._tables:
            raise ShapeError(NOTHING)
        return exact_scores({name: torch.cat([each[name] for each in self._tables]) for name in self._tables[0]})
