"""An operator applied to its own output: x_{t+1} = F(x_{t-H+1}, ..., x_t), t = 0, 1, ..., horizon - 1."""

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Grid, OperatorSignature


def rollout(
    model: nn.Module,
    x: Tensor,
    horizon: int,
    params: Tensor | None = None,
    grid: Grid | None = None,
    *,
    batch_size: int | None = None,
    gradients: bool = False,
) -> Tensor:
    """Predict `horizon` frames from one window: `(B, history, *space, C)` -> `(B, horizon, *space, C)`.

    Physical units. Only the first window is given; every later input is predicted. `model` is an operator or any
    module that is called as `module(x, params=None, grid=None)`.
    `batch_size` bounds how many samples are rolled out at a time, `gradients=True` keeps the graph through
    all steps. An operator whose output fields are not its input fields cannot be fed back: `ShapeError`.

    >>> from spectrakan.fields import OperatorSignature
    >>> from spectrakan.models import build_model
    >>> model = build_model("amfno", OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1))
    >>> rollout(model, torch.zeros(3, 2, 16, 1), horizon=5).shape
    torch.Size([3, 5, 16, 1])
    """
    if not isinstance(x, Tensor):
        raise ShapeError(f"expected an input as a torch tensor, got {type(x).__name__}; use torch.from_numpy(array)")
    signature = getattr(model, "signature", None)
    if isinstance(signature, OperatorSignature) and not signature.evolves:
        raise ShapeError(
            f"a rollout feeds outputs back as inputs, this operator maps {signature.in_channels} fields to "
            f"{signature.out_channels} {'other ' if signature.steady else ''}ones; call it once instead"
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


def _roll(model: nn.Module, window: Tensor, horizon: int, params: Tensor | None, grid: Grid | None) -> Tensor:
    frames = []
    for _ in range(horizon):
        frame: Tensor = model(window, params=params, grid=grid)
        if frame.shape != window[:, 0].shape:
            raise ShapeError(
                f"a rollout feeds outputs back as inputs: the model must map {tuple(window.shape)} to "
                f"{tuple(window[:, 0].shape)} = (batch, *space, fields), got {tuple(frame.shape)}"
            )
        frames.append(frame)
        window = torch.cat([window[:, 1:], frame[:, None]], dim=1)
    return torch.stack(frames, dim=1)
