"""Rollouts of a test set batch by batch, so that it may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.data.progress import Progress
from spectrakan.data.windows import Windows, WindowSettings
from spectrakan.errors import ShapeError
from spectrakan.fields import Grid, OperatorSignature, Trajectories, Window
from spectrakan.models.operator import Operator
from spectrakan.rollout import rollout


@dataclass(frozen=True, eq=False)
class Predicted:
    """Some samples: what the operator was given, what followed in truth, and what it said, in physical units."""

    samples: list[int]
    """Their numbers in the set."""
    window: Window
    """Given frames, and true frames `(batch, horizon, *space, out)`."""
    frames: Tensor
    """Predicted frames, of the same shape, on the CPU."""


def predicted_batches(
    model: Operator,
    trajectories: Trajectories,
    samples: Sequence[int] | None,
    horizon: int,
    *,
    batch_size: int = 16,
    progress: Progress | None = None,
) -> Iterator[Predicted]:
    """Rollouts over `horizon` frames from the first window of each sample, in order.

    The model is in its evaluation mode meanwhile. `samples` are numbers in the set, None means all.
    """
    chosen = list(range(trajectories.num_samples)) if samples is None else list(samples)
    if not chosen:
        return
    choices = WindowSettings(history=model.signature.history, horizon=horizon, starts="first")
    windows = Windows(trajectories, chosen, choices)
    require_fit(model.signature, windows.signature())
    with evaluation_mode(model):
        for first in range(0, len(chosen), batch_size):
            places = range(first, min(first + batch_size, len(chosen)))
            window = windows.gather(places)
            frames = predict_frames(model, window.inputs, horizon, window.params, window.grid)
            yield Predicted([chosen[place] for place in places], window, frames)
            if progress is not None:
                progress(places.stop, len(chosen))


@torch.no_grad()
def predict_frames(model: Operator, inputs: Tensor, horizon: int, params: Tensor | None, grid: Grid | None) -> Tensor:
    """`(B, history, *space, in)` -> `(B, horizon, *space, out)` on the CPU; one frame where nothing evolves."""
    like = next(iter(model.state_dict().values()))
    moved = inputs.to(like.device, like.dtype)
    conditions = None if params is None else params.to(like.device, like.dtype)
    if model.signature.evolves:
        return rollout(model, moved, horizon, conditions, grid).cpu()
    answer: Tensor = model(moved, conditions, grid)
    return answer[:, None].cpu()


@contextmanager
def evaluation_mode(model: Operator) -> Iterator[None]:
    """The model without dropout and with kept statistics; its mode is as before afterwards."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def require_fit(model: OperatorSignature, data: OperatorSignature) -> None:
    """Refuse data with other fields, axes or parameters than the model's."""
    if (data.space_dims, data.in_channels, data.steady) != (model.space_dims, model.in_channels, model.steady):
        raise ShapeError(
            f"the model takes {_told(model)}, the data have {_told(data)}; evaluate on data of the model's task"
        )
    if data.num_params != model.num_params:
        raise ShapeError(f"the model takes {model.num_params} parameters a sample, the data have {data.num_params}")


def _told(facts: OperatorSignature) -> str:
    kind = "steady fields" if facts.steady else "evolving fields"
    return f"{facts.in_channels} {kind} on {facts.space_dims} axes"
