"""Pointwise maps of a field, and two of them with a rectifier between.

    plain   W v + b,          normed   row i of W is g_i d_i / |d_i|   (weight normalisation, Salimans & Kingma 2016)

`add_rectified` is a residual layer's v + W_2 relu(W_1 y + b_1) + b_2 in one piece.
Shapes: fields `(channel, batch, *space)`.
"""

from __future__ import annotations

from typing import Any

import torch
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


def add_rectified(
    start: Float[Tensor, "channel batch *space"],
    field: Float[Tensor, "channel batch *space"],
    widen: nn.Linear,
    narrow: nn.Linear,
) -> Float[Tensor, "channel batch *space"]:
    """`start` + narrow(relu(widen(field))) in every cell."""
    total: Tensor = _AddRectified.apply(  # type: ignore[no-untyped-call]
        start.flatten(1), field.flatten(1), widen.weight, widen.bias, narrow.weight, narrow.bias
    )
    return total.view(start.shape)


class _AddRectified(torch.autograd.Function):
    """On `(channel, cells)`; a rectifier's result tells its slope, so both ways overwrite their own arrays."""

    @staticmethod
    def forward(
        ctx: Any, start: Tensor, field: Tensor, weight: Tensor, bias: Tensor, last: Tensor, last_bias: Tensor
    ) -> Tensor:
        hidden = torch.addmm(bias[:, None], weight, field).relu_()
        ctx.save_for_backward(field, weight, hidden, last)
        return (start + last_bias[:, None]).addmm_(last, hidden)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        field, weight, hidden, last = ctx.saved_tensors
        gradient = gradients[0]
        change = last.T @ gradient
        if torch.is_grad_enabled():
            change = change * (hidden > 0)
        else:
            torch.ops.aten.threshold_backward.grad_input(change, hidden, 0, grad_input=change)
        return (
            gradient,
            weight.T @ change,
            change @ field.T,
            change.sum(1),
            gradient @ hidden.T,
            gradient.sum(1),
        )
