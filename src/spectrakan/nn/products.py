"""Products along one axis of a field, combined so that their gradients are summed in place.

Shapes: fields `(channel, batch, *space)`, contiguous. Coefficients along an axis `(rows, channel, batch, *rest)`
where `rest` is `space` without that axis: rows first, so that modes can be mixed by one batched product.

A layer needs several products of the same field v: a pointwise one, W v, and one analysis an axis, A_a v.
In plain autograd each adds a gradient of full size to be summed later; here they go into one buffer.
`plain_analysis` and `plain_synthesis` are the same in plain operations: the reference of the tests, and the form that
`torch.func` transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.execution import transformed

ONEDNN = torch.backends.mkldnn.is_available()
LARGE = 2**20
"""Multiplications from which oneDNN's product is faster than its longer call."""


def product(first: Float[Tensor, "m k"], second: Float[Tensor, "k n"]) -> Float[Tensor, "m n"]:
    """`first @ second` without a gradient, for float32 on a CPU by oneDNN.

    Its kernels for AVX-512 run at about twice the rate of the BLAS behind `@` on processors of AMD. Both arrays must
    be dense, because other strides take oneDNN's slow reference path.
    """
    fast = ONEDNN and first.dtype == second.dtype == torch.float32 and first.device.type == "cpu"
    fast = fast and first.numel() * second.shape[1] >= LARGE and _is_dense(first) and _is_dense(second)
    if fast and not (torch.is_grad_enabled() or torch.compiler.is_compiling()):
        result: Tensor = torch.ops.mkldnn._linear_pointwise(first, second.T, None, "none", [], "")
        return result
    return first @ second


def _is_dense(matrix: Tensor) -> bool:
    return matrix.is_contiguous() or matrix.T.is_contiguous()


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
        gradient = _add_all(gradient, rows, [matrix.T for matrix in matrices], ctx.shape)
        return (gradient, weight_gradient, bias_gradient, *[None] * len(matrices))


class _Synthesise(torch.autograd.Function):
    """Forward and backward of `synthesise`: the sum is built up in place."""

    @staticmethod
    def forward(ctx: Any, start: Tensor | None, *rest: Tensor) -> Tensor:
        half = len(rest) // 2
        coefficients, matrices = rest[:half], rest[half:]
        _, channels, batch, *_ = coefficients[0].shape
        shape = torch.Size([channels, batch, *[matrix.shape[0] for matrix in matrices]])
        total = _add_all(start, coefficients, matrices, shape)
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


def _add_all(start: Tensor | None, rows: Sequence[Tensor], matrices: Sequence[Tensor], shape: torch.Size) -> Tensor:
    """`start` plus the syntheses along all axes, in place; without a start in a tensor of its own, not a view."""
    fields = (_from_rows(rows[axis], matrices[axis], axis, shape) for axis in range(len(rows)))
    if start is None:
        first, second = next(fields), next(fields, None)
        if second is None:
            start = first.clone(memory_format=torch.contiguous_format)
        elif torch.is_grad_enabled() or torch.compiler.is_compiling():
            start = (first + second).contiguous()
        else:
            start = torch.add(first, second, out=first.new_empty(shape))
    for field in fields:
        start = start.add_(field)
    return start


def _into_rows(field: Tensor, matrix: Tensor, axis: int) -> Tensor:
    """`plain_analysis` by one product, of the field itself (last axis) or of a copy with that axis first."""
    channels, batch, *space = field.shape
    rest = [size for other, size in enumerate(space) if other != axis]
    if axis == len(space) - 1:
        lines = field.reshape(-1, space[axis]).T
    else:
        lines = field.movedim(axis + 2, 0).reshape(space[axis], -1)
    return product(matrix, lines).view(-1, channels, batch, *rest)


def _from_rows(rows: Tensor, matrix: Tensor, axis: int, shape: torch.Size) -> Tensor:
    """`plain_synthesis` by the same product backwards; along other axes than the last it is a transposed view."""
    flat = rows.reshape(rows.shape[0], -1)
    if axis == len(shape) - 3:
        return product(flat.T, matrix.T).view(shape)
    first = product(matrix, flat).view(shape[axis + 2], *shape[: axis + 2], *shape[axis + 3 :])
    return first.movedim(0, axis + 2)
