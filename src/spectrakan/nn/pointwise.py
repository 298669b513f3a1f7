"""Maps that act in every cell by themselves: nonlinearities, linear maps and the readout R([f, A]).

    u(x) = W_2 gelu(W_1 f(x) + W_A A + b_1) + b_2

A is the same in all cells, so its part of the first product is one vector a sample, added by broadcasting.
Shapes: features `(channel, batch, *space)`, A `(batch, values)`, out `(out, batch, *space)`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.execution import transformed

ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "gelu": (F.gelu, torch.ops.aten.gelu_.default),
    "silu": (F.silu, torch.ops.aten.silu_.default),
    "relu": (F.relu, torch.ops.aten.relu_.default),
}
"""The function and its in-place form, by name."""


def activate(name: str, field: Tensor) -> Tensor:
    """Apply a nonlinearity to a field that the caller does not need any more.

    The field is overwritten, because new memory for each layer costs more than the arithmetic, unless gradients need
    its values; the result of ReLU is enough for its gradient.
    """
    plain, in_place = ACTIVATIONS[name]
    keeps = (name != "relu" and torch.is_grad_enabled()) or torch.compiler.is_compiling() or transformed()
    return plain(field) if keeps else in_place(field)


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
    """`start` plus the pointwise product, accumulated into the sum of `start` and bias."""
    if transformed():
        return start + pointwise(weight, bias, field)
    total = start.flatten(1) + bias[:, None]
    return total.addmm_(weight, field.flatten(1)).view(start.shape)


class PointwiseLinear(nn.Linear):
    """The same linear map in every cell."""

    def forward(self, field: Float[Tensor, "channel batch *space"]) -> Float[Tensor, "out batch *space"]:
        """`(in, batch, *space)` -> `(out, batch, *space)`."""
        return pointwise(self.weight, self.bias, field)


class Readout(nn.Module):
    """See the file's equation; without a global value (`global_width=0`) there is no W_A term."""

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
            # The vector of a sample is added together with the bias.
            shift = (self.broadcast(value) + self.local.bias).T
            local = pointwise(self.local.weight, None, features)
            hidden = activate("gelu", local + shift.view(*shift.shape, *[1] * (features.ndim - 2)))
        return pointwise(self.out.weight, self.out.bias, hidden)
