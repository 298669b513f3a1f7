"""Trajectories cut into windows: the input of an operator and its target.

A window of history H, horizon T and stride s that starts at frame a of a sample takes the frames
a, a + s, ..., a + (H - 1) s as its input and the next T frames at the same stride as its target.
A steady problem has one window a sample: its input fields, and its solution.
With `dt_input` the time step t[a + s] - t[a] is one more parameter of each window, called `dt`, so that one model
serves several steps; `strides` says which ones it is trained on.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Array, OperatorSignature, Trajectories, Window

Starts = Literal["all", "first"]


@settings
class WindowSettings:
    """How trajectories are cut."""

    history: Count = 1
    """Frames that the operator sees."""
    horizon: Annotated[int, Field(ge=0)] = 1
    """Frames that it should predict; 0 where there are none to compare with."""
    strides: tuple[Count, ...] = (1,)
    """Stored frames from one frame of a window to the next; windows of all these strides are cut."""
    dt_input: bool = False
    """Whether the time step of a window is one more parameter, `dt`."""
    starts: Starts = "all"
    """Whether a window starts at every frame where it fits, or only at the first one of each trajectory."""

    def __post_init__(self) -> None:
        if not self.strides or (len(self.strides) > 1 and not self.dt_input):
            raise ConfigError(
                f"windows of strides {self.strides} differ in their time step, so they need dt_input=true"
            )

    def length(self, stride: int) -> int:
        """Stored frames from the first to the last of a window of that stride."""
        return (self.history + self.horizon - 1) * stride + 1


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
        config: WindowSettings | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.trajectories = trajectories
        self.samples = np.asarray(samples, dtype=np.int64).reshape(-1)
        self.config = WindowSettings() if config is None else config
        self.dtype = dtype
        if self.samples.size == 0:
            raise ConfigError("no samples to cut into windows; give this part of the split a larger share")
        if self.samples.min() < 0 or self.samples.max() >= trajectories.num_samples:
            found = f"{self.samples.min()}..{self.samples.max()}"
            raise ShapeError(f"samples must lie in 0..{trajectories.num_samples - 1}, got {found}")
        self.starts = _starts(trajectories, self.config)

    def __len__(self) -> int:
        return len(self.samples) * len(self.starts)

    def locate(self, indices: Sequence[int]) -> tuple[npt.NDArray[np.int64], ...]:
        """The sample, the first frame and the stride of each of the windows."""
        numbers = np.asarray(indices, dtype=np.int64).reshape(-1)
        position, start = np.divmod(numbers, len(self.starts))
        return self.samples[position], self.starts[start, 0], self.starts[start, 1]

    def gather(self, indices: Sequence[int]) -> Window:
        """The windows of these numbers as one batch, in the order given, in physical units."""
        samples, starts, strides = self.locate(indices)
        source, config = self.trajectories, self.config
        times = None
        if source.inputs is not None:
            first = np.zeros((len(samples), 1), dtype=np.int64)
            inputs, targets = _frames(source.inputs, samples, first), _frames(source.values, samples, first)
        else:
            frames = starts[:, None] + np.arange(config.history + config.horizon) * strides[:, None]
            inputs, targets = np.split(_frames(source.values, samples, frames), [config.history], axis=1)
            times = torch.from_numpy(np.asarray(source.times, dtype=np.float64)[frames])
        return Window(
            inputs=self._tensor(inputs),
            targets=self._tensor(targets),
            params=self._params(samples, times),
            grid=source.grid,
            times=times,
        )

    def _params(self, samples: npt.NDArray[np.int64], times: Tensor | None) -> Tensor | None:
        """Parameters of each window; the last one is the time step where it is an input."""
        stored = self.trajectories.params
        parts = [] if stored is None else [self._tensor(stored[samples])]
        if self.config.dt_input and times is not None:
            parts.append((times[:, 1:2] - times[:, :1]).to(self.dtype))
        return torch.cat(parts, dim=1) if parts else None

    def _tensor(self, values: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.dtype)


def signature(trajectories: Trajectories, history: int, *, dt_input: bool = False) -> OperatorSignature:
    """What an operator on these data takes and gives; every fact comes from the data."""
    if trajectories.steady and (history != 1 or dt_input):
        raise ConfigError(
            f"a steady problem has one input frame and no time step, so history must be 1 and dt_input false, "
            f"got history {history} and dt_input {dt_input}"
        )
    if dt_input and "dt" in trajectories.param_names:
        raise ConfigError("the data have a parameter dt of their own; leave dt_input out, or give it another name")
    params = (*trajectories.param_names, *(["dt"] if dt_input else []))
    inputs = trajectories.input_fields if trajectories.steady else trajectories.fields
    return OperatorSignature(
        space_dims=len(trajectories.grid.shape),
        history=history,
        in_channels=len(inputs),
        out_channels=len(trajectories.fields),
        num_params=len(params),
        boundary=trajectories.grid.boundary,
        steady=trajectories.steady,
        in_fields=tuple(spec.name for spec in inputs),
        out_fields=tuple(spec.name for spec in trajectories.fields),
        param_names=params,
    )


def _starts(trajectories: Trajectories, config: WindowSettings) -> npt.NDArray[np.int64]:
    """First frame and stride of the windows of one sample, `(windows, 2)`."""
    if trajectories.steady:
        return np.array([[0, 1]])
    frames = len(trajectories.times)
    for stride in config.strides:
        if config.length(stride) > frames:
            raise ConfigError(
                f"history {config.history} and horizon {config.horizon} at stride {stride} need "
                f"{config.length(stride)} frames, the trajectories have {frames}; lower one of them"
            )
    if config.starts == "first":
        return np.array([[0, stride] for stride in config.strides])
    return np.array([[start, s] for s in config.strides for start in range(frames - config.length(s) + 1)])


def _frames(values: Array, samples: npt.NDArray[np.int64], frames: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Frames `(batch, frames)` of samples `(batch,)`, in one go from memory, else sample by sample."""
    if isinstance(values, np.ndarray):
        return cast(npt.NDArray[Any], values[samples[:, None], frames])
    parts = [slice(row[0], row[-1] + 1, row[1] - row[0] if len(row) > 1 else 1) for row in frames.tolist()]
    return np.stack([np.asarray(values[sample, part]) for sample, part in zip(samples.tolist(), parts, strict=True)])
