"""Trajectories cut into windows: what an operator sees and what it should say.

A window of history H, horizon T and stride s that starts at frame a of a sample takes the frames
a, a + s, ..., a + (H - 1) s as its input and the next T frames at the same stride as its target.
A steady task has one window a sample: its input fields, and its solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.data.observed import observed_cells
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Array, OperatorSignature, Trajectories, Window

Count = Annotated[int, Field(ge=1)]
Starts = Literal["all", "first"]


@settings
class WindowSettings:
    """How trajectories are cut."""

    history: Count = 1
    """Frames that the operator sees."""
    horizon: Count = 1
    """Frames that it should predict."""
    stride: Count = 1
    """Stored frames from one frame of a window to the next."""
    starts: Starts = "all"
    """Whether a window starts at every frame where it fits, or only at the first one of each trajectory."""
    observed_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Share of the cells of each trajectory's targets that the loss sees; below 1 only with `first`."""
    observed_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the choice of observed cells."""

    @property
    def length(self) -> int:
        """Stored frames from the first to the last of a window."""
        return (self.history + self.horizon - 1) * self.stride + 1


class Windows:
    """All windows of some samples of a set, numbered; `gather` reads the named ones as one batch.

    >>> from spectrakan.fields import FieldSpec, Grid
    >>> values = np.arange(5.0).reshape(1, 5, 1, 1)
    >>> frames = Trajectories(values, Grid.uniform((1,)), np.arange(5.0), (FieldSpec("u"),))
    >>> windows = Windows(frames, [0], WindowSettings(history=2, horizon=1))
    >>> len(windows), windows.gather([2]).targets.flatten().tolist()
    (3, [4.0])
    """

    def __init__(
        self,
        trajectories: Trajectories,
        samples: Sequence[int],
        choices: WindowSettings | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.trajectories = trajectories
        self.samples = np.asarray(samples, dtype=np.int64).reshape(-1)
        self.choices = WindowSettings() if choices is None else choices
        self.dtype = dtype
        _check_samples(self.samples, trajectories.num_samples)
        self.starts_per_sample = _starts_per_sample(trajectories, self.choices)

    def __len__(self) -> int:
        return len(self.samples) * self.starts_per_sample

    def locate(self, indices: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The sample and the first frame of each of the windows."""
        numbers = np.asarray(indices, dtype=np.int64).reshape(-1)
        if numbers.size and (numbers.min() < 0 or numbers.max() >= len(self)):
            raise ShapeError(f"window numbers must lie in 0..{len(self) - 1}, got {numbers.min()}..{numbers.max()}")
        position, start = np.divmod(numbers, self.starts_per_sample)
        return self.samples[position], start

    def gather(self, indices: Sequence[int]) -> Window:
        """The windows of these numbers as one batch, in the order given, in physical units."""
        samples, starts = self.locate(indices)
        source, choices = self.trajectories, self.choices
        times = None
        if source.inputs is not None:
            first = np.zeros((len(samples), 1), dtype=np.int64)
            inputs, targets = _frames(source.inputs, samples, first), _frames(source.values, samples, first)
        else:
            offsets = np.arange(choices.history + choices.horizon) * choices.stride
            frames = starts[:, None] + offsets
            inputs, targets = _cut(source.values, samples, frames, choices.history)
            times = torch.from_numpy(np.asarray(source.times, dtype=np.float64)[frames])
        return Window(
            inputs=self._tensor(inputs),
            targets=self._tensor(targets),
            params=None if source.params is None else self._tensor(source.params[samples]),
            grid=source.grid,
            observed=self._observed(samples),
            times=times,
        )

    def signature(self) -> OperatorSignature:
        """The facts that these windows impose on a model."""
        return signature(self.trajectories, self.choices.history)

    def _tensor(self, values: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.dtype)

    def _observed(self, samples: npt.NDArray[np.int64]) -> Tensor | None:
        if self.choices.observed_fraction == 1.0:
            return None
        space = self.trajectories.grid.shape
        choices = self.choices
        return observed_cells(samples.tolist(), space, choices.observed_fraction, choices.observed_seed)


def signature(trajectories: Trajectories, history: int) -> OperatorSignature:
    """What an operator on these data takes and gives; every fact comes from the data."""
    if trajectories.steady and history != 1:
        raise ConfigError(f"a steady task has one input frame, so history must be 1, got {history}")
    inputs = trajectories.input_fields if trajectories.steady else trajectories.fields
    return OperatorSignature(
        space_dims=len(trajectories.grid.shape),
        history=history,
        in_channels=len(inputs),
        out_channels=len(trajectories.fields),
        num_params=len(trajectories.param_names),
        boundary=trajectories.grid.boundary,
        steady=trajectories.steady,
    )


def _starts_per_sample(trajectories: Trajectories, choices: WindowSettings) -> int:
    if trajectories.steady:
        if (choices.history, choices.horizon) != (1, 1):
            raise ConfigError(
                "a steady task has history 1 and horizon 1, "
                f"got history {choices.history} and horizon {choices.horizon}"
            )
        return 1
    frames = len(trajectories.times)
    if choices.length > frames:
        raise ConfigError(
            f"history {choices.history} and horizon {choices.horizon} at stride {choices.stride} need "
            f"{choices.length} frames, the trajectories have {frames}; lower one of them"
        )
    if choices.starts == "first":
        return 1
    if choices.observed_fraction < 1.0:
        raise ConfigError(
            "observed_fraction below 1 needs starts='first': a window that starts later would show the "
            "operator a whole frame of which only a part was observed"
        )
    return frames - choices.length + 1


def _check_samples(samples: npt.NDArray[np.int64], available: int) -> None:
    if samples.size == 0:
        raise ConfigError("no samples to cut into windows; give this part of the split a larger share")
    if samples.min() < 0 or samples.max() >= available:
        raise ShapeError(f"samples must lie in 0..{available - 1}, got {samples.min()}..{samples.max()}")


def _cut(
    values: Array, samples: npt.NDArray[np.int64], frames: npt.NDArray[np.int64], history: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The first `history` of the frames and the rest: two gathers from memory, one read from a file."""
    if isinstance(values, np.ndarray):
        return _frames(values, samples, frames[:, :history]), _frames(values, samples, frames[:, history:])
    whole = _frames(values, samples, frames)
    return whole[:, :history], whole[:, history:]


def _frames(values: Array, samples: npt.NDArray[np.int64], frames: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Frames `(batch, frames)` of samples `(batch,)`, in one go from memory, else sample by sample."""
    if isinstance(values, np.ndarray):
        taken: npt.NDArray[Any] = values[samples[:, None], frames]
        return taken
    stride = int(frames[0, 1] - frames[0, 0]) if frames.shape[1] > 1 else 1
    return np.stack(
        [
            np.asarray(values[int(sample), int(row[0]) : int(row[-1]) + 1 : stride])
            for sample, row in zip(samples, frames, strict=True)
        ]
    )
