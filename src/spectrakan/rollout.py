"""An operator applied to its own answers: x_{t+1} = F(x_{t-H+1}, ..., x_t), t = 0, 1, ..., horizon - 1."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator


def rollout(
    model: Operator,
    x: Tensor,
    horizon: int,
    params: Tensor | None = None,
    grid: Grid | None = None,
    *,
    batch_size: int | None = None,
    gradients: bool = False,
) -> Tensor:
    """Predict `horizon` frames from one window: `(B, history, *space, C)` -> `(B, horizon, *space, C)`.

    Physical units. The first window is all that is ever read of the truth; every later input is predicted.
    `batch_size` bounds how many samples are rolled out at a time, `gradients=True` keeps the graph through
    all steps. An operator whose output fields are not its input fields cannot be fed back: `ShapeError`.

    >>> from spectrakan.fields import OperatorSignature
    >>> from spectrakan.models import build_model
    >>> model = build_model("amfno", OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1))
    >>> rollout(model, torch.zeros(3, 2, 16, 1), horizon=5).shape
    torch.Size([3, 5, 16, 1])
    """
    facts = model.signature
    if not facts.evolves:
        raise ShapeError(
            f"a rollout feeds answers back as inputs, this operator maps {facts.in_channels} fields to "
            f"{facts.out_channels} {'other ' if facts.steady else ''}ones; call it once instead"
        )
    if horizon < 1 or (batch_size is not None and batch_size < 1):
        raise ConfigError(f"horizon and batch_size must be at least 1, got {horizon} and {batch_size}")
    size = max(1, x.shape[0]) if batch_size is None else batch_size
    with nullcontext() if gradients else torch.no_grad():
        pieces = [
            _roll(model, part, horizon, None if params is None else params[first : first + size], grid)
            for first, part in zip(range(0, max(1, x.shape[0]), size), x.split(size), strict=True)
        ]
    return torch.cat(pieces)


def _roll(model: Operator, window: Tensor, horizon: int, params: Tensor | None, grid: Grid | None) -> Tensor:
    frames = []
    for _ in range(horizon):
        frame = model(window, params, grid)
        frames.append(frame)
        window = torch.cat([window[:, 1:], frame[:, None]], dim=1)
    return torch.stack(frames, dim=1)
