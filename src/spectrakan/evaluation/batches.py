"""Rollouts of a test set batch by batch, so that it may be larger than memory, alone or shared among processes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from spectrakan.data.windows import Windows, WindowSettings
from spectrakan.errors import ConfigError
from spectrakan.evaluation.operators import as_operator, numbers_of, takes_time_step
from spectrakan.fields import Grid, Progress, Trajectories, Window
from spectrakan.fields.grid_part import joined, whole_of
from spectrakan.metrics import MetricAccumulator
from spectrakan.models.operator import Operator
from spectrakan.models.rollout import rollout

Samples = Sequence[int] | None
"""Numbers of samples in a set; None means all."""


@dataclass(frozen=True)
class Share:
    """The part of one process among `processes`; by default there is one, which does everything."""

    rank: int = 0
    processes: int = 1
    exchange: Callable[[Any], list[Any]] = lambda document: [document]
    """An object of this process -> those of all processes, in their order; all must call it together."""

    def part(self, count: int, unit: int = 1) -> range:
        """Which of `count` items this process takes: successive ones, in whole units of `unit` items.

        >>> [list(Share(rank, 2).part(5, unit=2)) for rank in (0, 1)]
        [[0, 1], [2, 3, 4]]
        """
        units = -(-count // unit)
        first, last = (min(count, unit * (units * rank // self.processes)) for rank in (self.rank, self.rank + 1))
        return range(first, last)

    def join(self, stream: MetricAccumulator, grid: Grid) -> MetricAccumulator:
        """The streams of all processes as one, in their order."""
        if self.processes == 1:
            return stream
        joined = MetricAccumulator(grid)
        for other in self.exchange(stream):
            joined.merge(other)
        return joined


@dataclass(frozen=True)
class EvaluationSettings:
    """How an evaluation is carried out; none of it changes scores beyond rounding."""

    batch_size: int = 16
    """Samples that are rolled out together."""
    share: Share = Share()
    """The part of this process."""
    progress: Progress | None = None
    """Called with (done, total) samples after each batch."""


DEFAULT = EvaluationSettings()


def predicted_batches(
    model: nn.Module,
    trajectories: Trajectories,
    samples: Samples,
    horizon: int,
    settings: EvaluationSettings = DEFAULT,
) -> Iterator[tuple[Window, Tensor]]:
    """Windows, and rollouts over `horizon` frames from them `(batch, horizon, *space, out)` on the CPU, in order.

    A window is the first one of its sample, with the true frames as far as there are any. The model is in its
    evaluation mode meanwhile. Fields that are cut among processes are joined after the rollout, on each of them.
    """
    operator = as_operator(model, trajectories)
    chosen = all_or(samples, trajectories)
    if not chosen:
        return
    left = horizon if trajectories.steady else len(trajectories.times) - operator.signature.history
    windows = first_windows(operator, trajectories, chosen, min(horizon, left))
    was_training = operator.training
    operator.eval()
    try:
        for first in range(0, len(chosen), settings.batch_size):
            rows = range(first, min(first + settings.batch_size, len(chosen)))
            window = windows.gather(rows)
            frames = predict_frames(operator, window.inputs, horizon, window.params, window.grid)
            grid = trajectories.grid
            inputs, targets, frames = (joined(part, grid, 2) for part in (window.inputs, window.targets, frames))
            yield replace(window, inputs=inputs, targets=targets, grid=whole_of(grid)), frames
            if settings.progress is not None:
                settings.progress(rows.stop, len(chosen))
    finally:
        operator.train(was_training)


def all_predicted(
    model: nn.Module,
    trajectories: Trajectories,
    samples: Samples,
    horizon: int,
    settings: EvaluationSettings = DEFAULT,
) -> tuple[Tensor, Tensor]:
    """Predicted and true frames of some samples `(samples, horizon, *space, channel)`, all in memory."""
    if samples is not None and not samples:
        raise ConfigError("no samples to predict; give this part of the split a larger share")
    batches = list(predicted_batches(model, trajectories, samples, horizon, settings))
    return torch.cat([frames for _, frames in batches]), torch.cat([window.targets for window, _ in batches])


def first_windows(model: Operator, trajectories: Trajectories, samples: Sequence[int], horizon: int) -> Windows:
    """The first window of each sample, in float64 for a float64 model."""
    own = model.signature
    step = takes_time_step(own, trajectories)
    cut = WindowSettings(history=own.history, horizon=horizon, starts="first", dt_input=step)
    wide = numbers_of(model)[1] == torch.float64
    return Windows(trajectories, samples, cut, torch.float64 if wide else torch.float32)


@torch.no_grad()
def predict_frames(model: Operator, inputs: Tensor, horizon: int, params: Tensor | None, grid: Grid | None) -> Tensor:
    """`(B, history, *space, in)` -> `(B, horizon, *space, out)` on the CPU; one frame where nothing evolves."""
    numbers = numbers_of(model)
    moved, conditions = inputs.to(*numbers), None if params is None else params.to(*numbers)
    if model.signature.evolves:
        return rollout(model, moved, horizon, conditions, grid).cpu()
    frame: Tensor = model(moved, conditions, grid)
    return frame[:, None].cpu()


def all_or(samples: Samples, trajectories: Trajectories) -> list[int]:
    """The named samples, or all where none are named."""
    return list(range(trajectories.num_samples) if samples is None else samples)


def heading(model: Operator, trajectories: Trajectories, num_samples: int, horizon: int) -> dict[str, Any]:
    """The entries with which every result begins."""
    return {
        "task": trajectories.name,
        "model": model.name,
        "resolution": list(whole_of(trajectories.grid).shape),
        "num_samples": num_samples,
        "horizon": horizon,
    }
