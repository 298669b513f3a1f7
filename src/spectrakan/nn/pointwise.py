"""Maps that act in every cell by themselves: nonlinearities and linear maps. Fields `(channel, batch, *space)`."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.execution import transformed


class Activation(NamedTuple):
    """A nonlinearity in three forms."""

    plain: Callable[[Tensor], Tensor]
    in_place: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, Tensor], Tensor]
    """From the gradient of the result, which is overwritten, and the argument to the gradient of the argument."""


ACTIVATIONS = {
    "gelu": Activation(
        F.gelu, torch.ops.aten.gelu_.default, lambda g, x: torch.ops.aten.gelu_backward.grad_input(g, x, grad_input=g)
    ),
    "silu": Activation(
        F.silu, torch.ops.aten.silu_.default, lambda g, x: torch.ops.aten.silu_backward.grad_input(g, x, grad_input=g)
    ),
    "relu": Activation(F.relu, torch.ops.aten.relu_.default, lambda g, x: torch.ops.aten.threshold_backward(g, x, 0)),
}


def activate(name: str, field: Tensor) -> Tensor:
    """Apply a nonlinearity to a field that the caller does not need any more.

    The field is overwritten, because new memory for each layer costs more than the arithmetic, unless gradients need
    its values; the result of ReLU is enough for its gradient.
    """
    plain, in_place, _ = ACTIVATIONS[name]
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


class PointwiseLinear(nn.Linear):
    """The same linear map in every cell."""

    def forward(self, field: Float[Tensor, "channel batch *space"]) -> Float[Tensor, "out batch *space"]:
        """`(in, batch, *space)` -> `(out, batch, *space)`."""
        return pointwise(self.weight, self.bias, field)
