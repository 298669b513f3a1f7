"""Maps that act in every cell by themselves: nonlinearities and linear maps.

Shapes: fields `(channel, batch, *space)`.
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
