"""Products along one axis of a field, combined so that their gradients are summed in place.

Shapes: fields `(channel, batch, *space)`, contiguous. Coefficients along an axis `(rows, channel, batch, *rest)`
where `rest` is `space` without that axis: rows first, so that modes can be mixed by one batched product.

A layer needs several products of the same field v: a pointwise one, W v, and one analysis an axis, A_a v.
In plain autograd each adds a gradient of full size to be summed later; here they go into one buffer.
`plain_analysis` and `plain_synthesis` are the same in plain operations: the reference of the tests, and the form that
`torch.func` transforms.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.execution import transformed


def plain_analysis(
    field: Float[Tensor, "channel batch *space"], matrix: Float[Tensor, "rows n"], axis: int
) -> Float[Tensor, "rows channel batch *rest"]:
    """Coefficients `(rows, channel, batch, *rest)` = sum_j matrix[:, j] field[.., j, ..] along space axis `axis`."""
    rows: Tensor = torch.tensordot(matrix, field, dims=([1], [axis + 2]))
    return rows


def plain_synthesis(
    coefficients: Float[Tensor, "rows channel batch *rest"], matrix: Float[Tensor, "n rows"], axis: int
) -> Float[Tensor, "channel batch *space"]:
    """The field sum_r matrix[:, r] coefficients[r] along space axis `axis`: `(channel, batch, *space)`."""
    field: Tensor = torch.tensordot(matrix, coefficients, dims=([1], [0])).movedim(0, axis + 2)
    return field


def analyse(field: Tensor, weight: Tensor | None, bias: Tensor | None, *matrices: Tensor) -> tuple[Tensor, ...]:
    """The pointwise product `weight` field + bias (nothing without a weight), then the analysis along each axis.

    `weight` `(out, channel)`, `matrices[a]` `(rows_a, n_a)`; returns `[(out, batch, *space)]` and one
    coefficient array an axis.
    """
    if transformed():
        start = () if weight is None else (torch.tensordot(weight, field, dims=([1], [0])),)
        if bias is not None:
            start = tuple(each + bias.view(-1, *[1] * (field.ndim - 1)) for each in start)
        return (*start, *(plain_analysis(field, matrix, axis) for axis, matrix in enumerate(matrices)))
    outputs = _Analyse.apply(field, weight, bias, *matrices)  # type: ignore[no-untyped-call]
    return tuple(outputs)


def synthesise(start: Tensor | None, coefficients: list[Tensor], matrices: list[Tensor]) -> Tensor:
    """`start` (or zero) plus the synthesis along each axis; `start` is overwritten."""
    if transformed():
        parts = [
            plain_synthesis(rows, matrix, axis)
            for axis, (rows, matrix) in enumerate(zip(coefficients, matrices, strict=True))
        ]
        return torch.stack(parts).sum(0) if start is None else torch.stack([start, *parts]).sum(0)
    total: Tensor = _Synthesise.apply(start, *coefficients, *matrices)  # type: ignore[no-untyped-call]
    return total


class _Analyse(torch.autograd.Function):
    """Forward and backward of `analyse`; linear in the field, so the backward is made of the same products."""

    generate_vmap_rule = True

    @staticmethod
    def forward(field: Tensor, weight: Tensor | None, bias: Tensor | None, *matrices: Tensor) -> tuple[Tensor, ...]:
        coefficients = [_into_rows(field, matrix, axis) for axis, matrix in enumerate(matrices)]
        if weight is None:
            return tuple(coefficients)
        # The result is overwritten by `synthesise`, which autograd allows for a tensor but not for a view of one.
        product = field.new_empty(weight.shape[0], *field.shape[1:])
        if bias is None:
            torch.mm(weight, field.flatten(1), out=product.flatten(1))
        else:
            torch.addmm(bias[:, None], weight, field.flatten(1), out=product.flatten(1))
        return (product, *coefficients)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        field, weight, bias, *matrices = inputs
        ctx.has_weight, ctx.has_bias = weight is not None, bias is not None
        ctx.shape = field.shape
        ctx.save_for_backward(field if ctx.has_weight else None, weight, *matrices)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        field, weight, *matrices = ctx.saved_tensors
        gradient, weight_gradient, bias_gradient = None, None, None
        rows = list(gradients)
        if ctx.has_weight:
            flat = rows.pop(0).flatten(1)
            gradient = (weight.T @ flat).view(ctx.shape)
            weight_gradient = flat @ field.flatten(1).T if ctx.needs_input_grad[1] else None
            bias_gradient = flat.sum(1) if ctx.has_bias else None
        for axis, (row, matrix) in enumerate(zip(rows, matrices, strict=True)):
            gradient = _add_from_rows(gradient, row, matrix.T, axis, ctx.shape)
        return (gradient, weight_gradient, bias_gradient, *[None] * len(matrices))


class _Synthesise(torch.autograd.Function):
    """Forward and backward of `synthesise`: the sum is built up in place."""

    @staticmethod
    def forward(ctx: Any, start: Tensor | None, *rest: Tensor) -> Tensor:
        half = len(rest) // 2
        coefficients, matrices = rest[:half], rest[half:]
        _, channels, batch, *_ = coefficients[0].shape
        shape = torch.Size([channels, batch, *[matrix.shape[0] for matrix in matrices]])
        # Not the result of the first product: autograd forbids later layers to add to a view in place.
        total = coefficients[0].new_empty(shape) if start is None else start
        for axis, (rows, matrix) in enumerate(zip(coefficients, matrices, strict=True)):
            _add_from_rows(total, rows, matrix, axis, shape, keep=start is not None or axis > 0)
        if start is not None:
            ctx.mark_dirty(start)
        ctx.has_start = start is not None
        ctx.save_for_backward(*matrices)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        matrices = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        rows = [_into_rows(gradient, matrix.T, axis) for axis, matrix in enumerate(matrices)]
        return (gradient if ctx.has_start else None, *rows, *[None] * len(matrices))


def _into_rows(field: Tensor, matrix: Tensor, axis: int) -> Tensor:
    """`plain_analysis` by one product (last axis) or one batched product and a copy of its small result."""
    channels, batch, *space = field.shape
    rest = [size for other, size in enumerate(space) if other != axis]
    if axis == len(space) - 1:
        return (matrix @ field.reshape(-1, space[axis]).T).view(-1, channels, batch, *rest)
    before = channels * batch * math.prod(space[:axis])
    stacked = field.reshape(before, space[axis], -1)
    product = torch.bmm(matrix.expand(before, *matrix.shape), stacked)
    return product.transpose(0, 1).reshape(-1, channels, batch, *rest)


def _add_from_rows(
    target: Tensor | None, rows: Tensor, matrix: Tensor, axis: int, shape: torch.Size, *, keep: bool = True
) -> Tensor:
    """Add `plain_synthesis` to `target` in place (or begin with it), by the same products backwards.

    Without `keep` the values of `target` are overwritten.
    """
    space = shape[2:]
    count = rows.shape[0]
    if axis == len(space) - 1:
        flat = rows.reshape(count, -1).T
        if target is None:
            return (flat @ matrix.T).view(shape)
        target.view(-1, space[axis]).addmm_(flat, matrix.T, beta=int(keep))
        return target
    before = math.prod(shape[: axis + 2])
    stacked = rows.reshape(count, before, -1).transpose(0, 1)
    many = matrix.expand(before, *matrix.shape)
    if target is None:
        return torch.bmm(many, stacked).view(shape)
    target.view(before, space[axis], -1).baddbmm_(many, stacked, beta=int(keep))
    return target
