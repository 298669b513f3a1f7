"""The linear map from a network's few input channels to its features, whose channels lie together in each cell.

The gradient of its weights is a sum over all cells and samples: one product of the input with the gradient's cells.
Shapes: fields `(channel, batch, *space)`.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.execution import differentiable, plain_forms
from spectrakan.nn.pointwise import pointwise
from spectrakan.nn.products import cells_of, in_memory, new_cells, product


def lifted(
    weight: Float[Tensor, "out channel"], bias: Float[Tensor, " out"], field: Float[Tensor, "channel batch *space"]
) -> Float[Tensor, "out batch *space"]:
    """`weight` field + `bias` in every cell, `(in, batch, *space)` -> `(out, batch, *space)`."""
    if plain_forms() or field.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return pointwise(weight, bias, field)
    if not torch.is_grad_enabled():
        return _Lift.forward(None, weight, bias, field)
    found: Tensor = _Lift.apply(weight, bias, field)  # type: ignore[no-untyped-call]
    return found


class _Lift(torch.autograd.Function):
    """Forward and backward of `lifted`."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, field: Tensor) -> Tensor:
        out, cells = new_cells(field, len(weight))
        torch.addmm(bias, _rows(cells_of(field)), weight.T, out=_rows(cells))
        if ctx is not None:
            ctx.save_for_backward(weight, bias, field)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weight, bias, field = ctx.saved_tensors
        if torch.is_grad_enabled():  # of second order
            return differentiable(pointwise, gradients[0], weight, bias, field)
        rows, by_field = _rows(cells_of(gradients[0])), None
        if ctx.needs_input_grad[2]:
            by_field, below = new_cells(field, len(field))
            torch.mm(rows, weight, out=_rows(below))
        return product(_rows(cells_of(field)).T, rows).T, rows.sum(0), by_field


def _rows(cells: Tensor) -> Tensor:
    return in_memory(cells).flatten(0, -2)
