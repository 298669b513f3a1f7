"""The pointwise readout R([f, A]): what the features and the global value say in each cell.

    u(x) = W_2 gelu(W_1 f(x) + W_A A + b_1) + b_2

A is the same in all cells, so its part of the first product is one vector a sample, added by broadcasting.
Shapes: features `(channel, batch, *space)`, A `(batch, values)`, out `(out, batch, *space)`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.activation import activate
from spectrakan.nn.embedding import pointwise


class Readout(nn.Module):
    """See the file's equation; without a global value (`global_width=0`) the W_A term is not there."""

    def __init__(self, width: int, global_width: int, hidden: int, out_channels: int) -> None:
        super().__init__()
        self.local = nn.Linear(width, hidden)
        self.broadcast = nn.Linear(global_width, hidden, bias=False) if global_width else None
        self.out = nn.Linear(hidden, out_channels)

    def forward(
        self, features: Float[Tensor, "channel batch *space"], value: Float[Tensor, "batch values"] | None
    ) -> Float[Tensor, "out batch *space"]:
        """Features and the global value to the output fields."""
        if self.broadcast is None or value is None:
            hidden = activate("gelu", pointwise(self.local.weight, self.local.bias, features))
        else:
            # The vector of a sample goes in with the bias.
            hidden = _hidden(features.flatten(2), self.local.weight, (self.broadcast(value) + self.local.bias).T)
            hidden = hidden.view(-1, *features.shape[1:])
        return pointwise(self.out.weight, self.out.bias, hidden)


def _hidden(features: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    """gelu(W f + s), in place unless gradients are wanted."""
    kind = features.device.type
    if torch.is_autocast_enabled(kind):  # gradients are made where nothing is cast any more
        low = torch.get_autocast_dtype(kind)
        features, weight, shift = features.to(low), weight.to(low), shift.to(low)
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        hidden: Tensor = _Hidden.apply(features, weight, shift)[0]  # type: ignore[no-untyped-call]
        return hidden
    return activate("gelu", _before(features, weight, shift))


class _Hidden(torch.autograd.Function):
    """gelu(W f + s) for features `(channel, batch, cells)` and shifts `(hidden, batch)`.

    Left to autograd, the addition in place would have its gradient copied through a second array.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, weight: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        before = _before(features, weight, shift)
        return F.gelu(before), before

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return None, None, None
        features, weight, shift, before = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody differentiates this gradient, and the slopes depend on its inputs
            before = _before(features, weight, shift)
        change = torch.ops.aten.gelu_backward(gradients[0], before)
        flat = change.flatten(1)
        back = (weight.T @ flat).view(features.shape)
        return back, flat @ features.flatten(1).T, change.sum(2)


def _before(features: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    """W f + s."""
    product = (weight @ features.flatten(1)).view(-1, *features.shape[1:])
    return product + shift[..., None] if torch.is_grad_enabled() else product.add_(shift[..., None])


def add_everywhere(features: Tensor, value: Tensor) -> Tensor:
    """f(x) + A, the paper's other form of fusion: `(channel, batch, *space)` plus `(batch, channel)`."""
    shift = value.T
    return features + shift.view(*shift.shape, *[1] * (features.ndim - 2))
