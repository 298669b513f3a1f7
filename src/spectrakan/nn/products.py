"""Products along one axis of a field, combined so that their gradients are summed in place.

Shapes: fields `(channel, batch, *space)`, contiguous. Coefficients along an axis `(rows, channel, batch, *rest)`
where `rest` is `space` without that axis: rows first, so that modes can be mixed by one batched product.

A layer needs several products of the same field v: a pointwise one, W v, and one analysis an axis, A_a v.
In plain autograd each adds a gradient of full size to be summed later; here they go into one buffer.
Under `torch.func` the same products are differentiated and batched by torch.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.execution import transformed
from spectrakan.nn.pointwise import ACTIVATIONS

ONEDNN = torch.backends.mkldnn.is_available()
FEW = 64
"""Lines from which oneDNN's grouped product is the faster one."""
LARGE = 2**20
"""Multiplications from which oneDNN's product is faster than its longer call."""


def product(first: Float[Tensor, "m k"], second: Float[Tensor, "k n"]) -> Float[Tensor, "m n"]:
    """`first @ second` without a gradient, for float32 on a CPU by oneDNN.

    Its kernels for AVX-512 run at about twice the rate of the BLAS behind `@` on processors of AMD. Both arrays must
    be dense, because other strides take oneDNN's slow reference path.
    """
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or transformed():
        return first @ second  # before sizes are compared: a traced program must not be tied to some of them
    fast = ONEDNN and first.dtype == second.dtype == torch.float32 and first.device.type == "cpu"
    if fast and first.numel() * second.shape[1] >= LARGE and _is_dense(first) and _is_dense(second):
        result: Tensor = torch.ops.mkldnn._linear_pointwise(first, second.T, None, "none", [], "")
        return result
    return first @ second


def linear(
    rows: Float[Tensor, "rows k"],
    weight: Float[Tensor, "n k"],
    bias: Float[Tensor, " n"] | None = None,
    activation: str = "",
) -> Float[Tensor, "rows n"]:
    """`activation(rows weight^T + bias)` of dense rows without a gradient."""
    if rows.dtype == torch.float32 and ONEDNN and rows.device.type == "cpu":
        name, kind = ("gelu", "none") if activation == "gelu" else ("none", "")
        found: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, name, [], kind)
        return found if activation in ("", "gelu") else ACTIVATIONS[activation].in_place(found)
    found = rows @ weight.T if bias is None else torch.addmm(bias, rows, weight.T)
    return ACTIVATIONS[activation].in_place(found) if activation else found


def grouped_product(
    rows: Float[Tensor, "mode line k"], matrices: Float[Tensor, "mode k n"]
) -> Float[Tensor, "mode line n"]:
    """Each mode's rows by its matrix, without a gradient.

    Where the modes of a line lie together and lines are many, it is a convolution of one cell: oneDNN has such
    grouped products for AVX-512, at twice the rate of the BLAS behind `bmm` on processors of AMD.
    """
    modes, inputs, out = matrices.shape
    fast = rows.dtype == torch.float32 and ONEDNN and rows.device.type == "cpu" and rows.shape[1] >= FEW
    if fast and rows.transpose(0, 1).is_contiguous():
        pixels = rows.transpose(0, 1).reshape(1, 1, -1, modes * inputs).permute(0, 3, 1, 2)
        kernel = matrices.mT.reshape(modes * out, inputs, 1, 1)
        found = torch.mkldnn_convolution(pixels, kernel, None, [0, 0], [1, 1], [1, 1], modes)
        return found.permute(0, 2, 3, 1).reshape(-1, modes, out).transpose(0, 1)
    return torch.bmm(rows, matrices)


def cells_of(field: Float[Tensor, "channel batch *space"]) -> Float[Tensor, "batch *space channel"]:
    """The field with the channels of a cell together, as `dense` has them."""
    return dense(field.movedim(0, -1))


def dense(cells: Float[Tensor, "batch *space channel"]) -> Float[Tensor, "batch *space channel"]:
    """Cells in memory as they are shown, but on one axis `(cell, batch, channel)`.

    There a sample has few cells; in this order a transform of all samples is one product, of the cells as they lie.
    """
    return in_memory(in_memory(cells).contiguous())


def in_memory(cells: Float[Tensor, "batch *space channel"]) -> Tensor:
    """Dense cells in the order in which they lie in memory."""
    return cells.transpose(0, 1) if cells.ndim == 3 else cells


def new_cells(field: Float[Tensor, "channel batch *space"], channels: int) -> tuple[Tensor, Tensor]:
    """Memory for a field of the same cells, the channels of a cell together: as a field, and as dense cells."""
    shape = field.shape[1:]
    strides = [channels * math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    if len(shape) == 2:
        strides = [channels, channels * shape[0]]
    new = field.new_empty_strided((channels, *shape), (1, *strides))
    return new, new.movedim(0, -1)


def _is_dense(matrix: Tensor) -> bool:
    return matrix.is_contiguous() or matrix.T.is_contiguous()


def analysis(
    field: Float[Tensor, "channel batch *space"], matrix: Float[Tensor, "rows n"], axis: int
) -> Float[Tensor, "rows channel batch *rest"]:
    """Coefficients `(rows, channel, batch, *rest)` = sum_j matrix[:, j] field[.., j, ..] along space axis `axis`.

    One product, of the field itself (last axis) or of a copy with that axis first.
    """
    channels, batch, *space = field.shape
    rest = [size for other, size in enumerate(space) if other != axis]
    if axis == len(space) - 1:
        lines = field.reshape(-1, space[axis]).T
    else:
        lines = field.movedim(axis + 2, 0).reshape(space[axis], -1)
    return product(matrix, lines).view(-1, channels, batch, *rest)


def synthesis(
    coefficients: Float[Tensor, "rows channel batch *rest"], matrix: Float[Tensor, "n rows"], axis: int
) -> Float[Tensor, "channel batch *space"]:
    """The field sum_r matrix[:, r] coefficients[r] along space axis `axis`; contiguous along the last axis.

    The same product backwards; along other axes than the last it is a transposed view.
    """
    count, *others = coefficients.shape
    flat = coefficients.reshape(count, -1)
    if axis == len(others) - 2:
        return _owned(product(flat.T, matrix.T), (*others, matrix.shape[0]))
    return product(matrix, flat).view(-1, *others).movedim(0, axis + 2)


def _owned(matrix: Tensor, shape: Sequence[int]) -> Tensor:
    """The same memory in another shape, as a tensor of its own: autograd lets it be overwritten, a view not."""
    whole: Tensor = torch.ops.aten._unsafe_view.default(matrix, shape)
    return whole


def analyse(field: Tensor, pointwise: nn.Linear | None, *matrices: Tensor) -> Any:
    """The pointwise map of a field (None without one), then its coefficients along each axis.

    `matrices[a]` `(rows_a, n_a)`.
    """
    given = field, *((None, None) if pointwise is None else (pointwise.weight, pointwise.bias)), *matrices
    made = _analysed(*given) if _by_torch() else _Analyse.apply(*given)  # type: ignore[no-untyped-call]
    return made if pointwise is not None else (None, *made)


def synthesise(start: Tensor | None, coefficients: list[Tensor], matrices: list[Tensor]) -> Tensor:
    """`start` (or zero) plus the synthesis along each axis; `start` is overwritten."""
    if _by_torch():
        return _total(start, coefficients, matrices)
    total: Tensor = _Synthesise.apply(start, *coefficients, *matrices)  # type: ignore[no-untyped-call]
    return total


def _by_torch() -> bool:
    """Whether no gradient is wanted, or torch makes it: a compiler cannot follow sums that are built up in place."""
    return torch.compiler.is_compiling() or transformed() or not torch.is_grad_enabled()


def _total(start: Tensor | None, coefficients: Sequence[Tensor], matrices: Sequence[Tensor]) -> Tensor:
    """`start`, which is overwritten, plus the syntheses along all axes; the last one is contiguous and begins."""
    last = len(matrices) - 1
    total = synthesis(coefficients[last], matrices[last], last)
    parts = [total] if start is not None else []
    total = total if start is None else start
    parts += [synthesis(coefficients[axis], matrices[axis], axis) for axis in range(last)]
    for part in parts:
        total = total + part if transformed() else total.add_(part)
    return total


def _analysed(field: Tensor, weight: Tensor | None, bias: Tensor | None, *matrices: Tensor) -> tuple[Tensor, ...]:
    coefficients = tuple(analysis(field, matrix, axis) for axis, matrix in enumerate(matrices))
    if weight is None:
        return coefficients
    start = product(weight, field.flatten(1))
    if bias is not None:
        start = start + bias[:, None] if transformed() else start.add_(bias[:, None])
    # The result is overwritten by `synthesise`.
    return (_owned(start, (-1, *field.shape[1:])), *coefficients)


class _Analyse(torch.autograd.Function):
    """Forward and backward of `analyse`; linear in the field, so the backward is made of the same products."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, ...]:
        field, weight, bias, *matrices = given
        ctx.has_bias = bias is not None
        ctx.save_for_backward(None if weight is None else field, weight, *matrices)
        return _analysed(*given)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        field, weight, *matrices = ctx.saved_tensors
        start, weight_gradient, bias_gradient = None, None, None
        rows = list(gradients)
        if weight is not None:
            flat = rows.pop(0).flatten(1)
            start = product(weight.T, flat).view(field.shape)
            weight_gradient = product(flat, field.flatten(1).T) if ctx.needs_input_grad[1] else None
            bias_gradient = flat.sum(1) if ctx.has_bias else None
        gradient = _total(start, rows, [matrix.T for matrix in matrices])
        return (gradient, weight_gradient, bias_gradient, *[None] * len(matrices))


class _Synthesise(torch.autograd.Function):
    """Forward and backward of `synthesise`: the sum is built up in place."""

    @staticmethod
    def forward(ctx: Any, start: Tensor | None, *rest: Tensor) -> Tensor:
        half = len(rest) // 2
        total = _total(start, rest[:half], rest[half:])
        if start is not None:
            ctx.mark_dirty(start)
        ctx.has_start = start is not None
        ctx.save_for_backward(*rest[half:])
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        matrices = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        rows = [analysis(gradient, matrix.T, axis) for axis, matrix in enumerate(matrices)]
        return (gradient if ctx.has_start else None, *rows, *[None] * len(matrices))
