"""What the lift sees: the history of the field as channels, and where each cell is.

Shapes: in `(batch, history, *space, field)`, out `(history * field + axes, batch, *space)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.axis import Axis


def channels_first(history: Float[Tensor, "batch history *space field"]) -> Float[Tensor, "channels batch *space"]:
    """`(batch, history, *space, field)` -> `(history * field, batch, *space)`, frames in order of time."""
    return history.movedim((1, -1), (0, 1)).flatten(0, 1).contiguous()


def channels_last(field: Float[Tensor, "field batch *space"]) -> Float[Tensor, "batch *space field"]:
    """`(field, batch, *space)` -> `(batch, *space, field)`."""
    return field.movedim(0, -1)


def with_coordinates(field: Tensor, axes: Sequence[Axis], along: Sequence[int] | None = None) -> Tensor:
    """Append the cell centres in [0, 1], one channel an axis; of all axes, or `along` some of them."""
    space = field.shape[2:]
    channels = [field]
    for place in range(len(axes)) if along is None else along:
        view = [1] * (field.ndim - 2)
        view[place] = space[place]
        centres = axes[place].centres.to(field.dtype).to(field.device).view(1, 1, *view)
        channels.append(centres.expand(1, field.shape[1], *space))
    return torch.cat(channels)


def pointwise(
    weight: Float[Tensor, "out channel"],
    bias: Float[Tensor, " out"] | None,
    field: Float[Tensor, "channel batch *space"],
) -> Float[Tensor, "out batch *space"]:
    """The same linear map in every cell: `(in, batch, *space)` -> `(out, batch, *space)`."""
    flat = field.flatten(1)
    product = weight @ flat if bias is None else torch.addmm(bias[:, None], weight, flat)
    return product.view(-1, *field.shape[1:])


def added_pointwise(
    start: Float[Tensor, "out batch *space"],
    weight: Float[Tensor, "out channel"],
    bias: Float[Tensor, " out"],
    field: Float[Tensor, "channel batch *space"],
) -> Float[Tensor, "out batch *space"]:
    """`start` plus the pointwise product, which is summed where the sum of `start` and bias already lies."""
    total = start.flatten(1) + bias[:, None]
    return total.addmm_(weight, field.flatten(1)).view(start.shape)
