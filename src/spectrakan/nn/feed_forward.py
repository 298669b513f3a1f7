"""Pointwise maps of a field, and two of them with a rectifier between.

    plain   W v + b,          normed   row i of W is g_i d_i / |d_i|   (weight normalisation, Salimans & Kingma 2016)

Shapes: fields `(channel, batch, *space)`.
"""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.embedding import pointwise


class PlainLinear(nn.Linear):
    """The same linear map in every cell."""

    def forward(self, field: Float[Tensor, "channel batch *space"]) -> Float[Tensor, "out batch *space"]:
        """`(in, batch, *space)` -> `(out, batch, *space)`."""
        return pointwise(self.weight, self.bias, field)


class NormedLinear(nn.Module):
    """The same with the rows' lengths and directions as separate parameters."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        start = nn.Linear(in_channels, out_channels)
        self.direction = nn.Parameter(start.weight.detach().clone())
        self.length = nn.Parameter(start.weight.detach().norm(dim=1))
        self.bias = nn.Parameter(start.bias.detach().clone())

    def weight(self) -> Float[Tensor, "out channel"]:
        """The matrix W."""
        scale: Tensor = self.length / self.direction.norm(dim=1)
        return self.direction * scale[:, None]

    def forward(self, field: Float[Tensor, "channel batch *space"]) -> Float[Tensor, "out batch *space"]:
        """`(in, batch, *space)` -> `(out, batch, *space)`."""
        return pointwise(self.weight(), self.bias, field)


class FeedForward(nn.Module):
    """narrow(relu(widen(v)))."""

    def __init__(self, widen: PlainLinear | NormedLinear, narrow: PlainLinear | NormedLinear) -> None:
        super().__init__()
        self.widen, self.narrow = widen, narrow

    def forward(self, field: Float[Tensor, "channel batch *space"]) -> Float[Tensor, "channel batch *space"]:
        """`(channel, batch, *space)` to the same shape."""
        result: Tensor = self.narrow(F.relu(self.widen(field)))
        return result
