"""Units fitted to training data: mean and spread of each field, streamed in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.fields import Array, FieldSpec, Trajectories
from spectrakan.nn.normalizer import Normalizer

CHUNK_VALUES = 2**22
"""Numbers read at a time: 32 MB as float64."""


@dataclass(frozen=True)
class Units:
    """The units of everything that a model takes and gives."""

    inputs: Normalizer
    outputs: Normalizer
    params: Normalizer | None = None


def fit_units(trajectories: Trajectories, samples: Sequence[int], *, log_positive: bool = False) -> Units:
    """Fit the units to the named samples alone: hand in the training part, never the whole set.

    Inputs and outputs share one normaliser where they are the same fields. With `log_positive`, fields that
    cannot be zero or below are scaled by the mean and spread of their logarithm.
    """
    outputs = fit_normalizer(trajectories.values, samples, trajectories.fields, log_positive=log_positive)
    inputs = outputs
    if trajectories.inputs is not None:
        inputs = fit_normalizer(trajectories.inputs, samples, trajectories.input_fields, log_positive=log_positive)
    params = None
    if trajectories.params is not None:
        names = tuple(FieldSpec(name) for name in trajectories.param_names)
        params = fit_normalizer(trajectories.params, samples, names)
    return Units(inputs=inputs, outputs=outputs, params=params)


def fit_normalizer(
    values: Array, samples: Sequence[int], fields: Sequence[FieldSpec], *, log_positive: bool = False
) -> Normalizer:
    """Mean and standard deviation of `values` `(samples, ..., channel)` over the named samples.

    A field that does not vary beyond the rounding of its stored type gets scale 1: it becomes zero, and
    comes back exactly.
    """
    if len(samples) == 0:
        raise ConfigError("cannot fit units to no samples; give the training part a larger share")
    logarithmic = np.array([log_positive and field.positive for field in fields])
    moments = _Moments(len(fields))
    per_sample = max(1, int(np.prod(values.shape[1:])))
    chunk = max(1, CHUNK_VALUES // per_sample)
    ordered = sorted(int(sample) for sample in samples)
    for begin in range(0, len(ordered), chunk):
        rows = _rows(values, ordered[begin : begin + chunk]).reshape(-1, len(fields))
        _check(rows, fields, logarithmic)
        moments.add(np.where(logarithmic, np.log(np.where(logarithmic, rows, 1.0)), rows))
    mean, spread = moments.mean, moments.spread
    precision = np.finfo(values.dtype).eps if values.dtype.kind == "f" else 0.0
    constant = spread <= 4 * precision * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    normalizer = Normalizer(len(fields))
    normalizer.set(
        mean=torch.from_numpy(mean),
        scale=torch.from_numpy(np.where(constant, 1.0, spread)),
        logarithmic=torch.from_numpy(logarithmic),
    )
    return normalizer


class _Moments:
    """Mean and variance of rows that come in pieces (Chan, Golub and LeVeque 1979).

    Values are taken relative to the first row, so a constant field has a spread of exactly zero and a small
    variation on a large mean keeps its digits.
    """

    def __init__(self, num_channels: int) -> None:
        self.count = 0
        self.origin = np.zeros(num_channels)
        self.shifted_mean = np.zeros(num_channels)
        self.squares = np.zeros(num_channels)

    def add(self, rows: npt.NDArray[np.float64]) -> None:
        if self.count == 0:
            self.origin = rows[0].copy()
        shifted = rows - self.origin
        count, mean = len(rows), shifted.mean(axis=0)
        squares = ((shifted - mean) ** 2).sum(axis=0)
        total = self.count + count
        apart = mean - self.shifted_mean
        self.squares += squares + apart**2 * (self.count * count / total)
        self.shifted_mean += apart * (count / total)
        self.count = total

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        return self.origin + self.shifted_mean

    @property
    def spread(self) -> npt.NDArray[np.float64]:
        return np.sqrt(self.squares / self.count)


def _rows(values: Array, samples: list[int]) -> npt.NDArray[np.float64]:
    """Samples as float64; from a file one by one, for files read slices faster than lists."""
    if isinstance(values, np.ndarray):
        return values[samples].astype(np.float64)
    return np.stack([np.asarray(values[sample], dtype=np.float64) for sample in samples])


def _check(rows: npt.NDArray[np.float64], fields: Sequence[FieldSpec], logarithmic: npt.NDArray[np.bool_]) -> None:
    for index, field in enumerate(fields):
        if not np.isfinite(rows[:, index]).all():
            raise DataFormatError(f"field '{field.name}' has NaN or infinite values; `spectrakan check` tells where")
        if logarithmic[index] and rows[:, index].min() <= 0:
            raise DataFormatError(
                f"field '{field.name}' should be positive but reaches {rows[:, index].min():g}; "
                "fit it without logarithm"
            )
