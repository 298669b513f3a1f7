"""The pointwise network with one hidden layer, a piece of the cells at a time; as a readout R([f, A]) too.

    u(x) = start(x) + W_2 sigma(scale W_1 v(x) + shift) + b_2,     R([f, A]) = W_2 gelu(W_1 f(x) + W_A A + b_1) + b_2

Scale and shift have one number a hidden channel, the same for all samples or one set a sample. The hidden channels of
all cells together are the largest array of a network; those of a piece stay in the processor's cache, and the
backward pass computes them again instead of keeping them.
`plain_feed_forward` is the same in plain operations: the reference of the tests, and the form that is traced,
transformed and certified.
Shapes: fields `(channel, batch, *space)`, scale and shift `(hidden, batch or 1)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.execution import differentiable, observed, transformed
from spectrakan.nn.pointwise import ACTIVATIONS, activate, pointwise
from spectrakan.nn.products import product

PIECE = 8192
"""Most cells of a piece."""


class Readout(nn.Module):
    """R([f, A]) of the file's head; without a global value (`global_width=0`) there is no W_A term.

    A is the same in all cells, so its part of the first product is one vector a sample.
    """

    def __init__(self, width: int, global_width: int, hidden: int, out_channels: int) -> None:
        super().__init__()
        self.local = nn.Linear(width, hidden)
        self.broadcast = nn.Linear(global_width, hidden, bias=False) if global_width else None
        self.out = nn.Linear(hidden, out_channels)

    def forward(
        self, features: Float[Tensor, "channel batch *space"], value: Float[Tensor, "batch values"] | None
    ) -> Float[Tensor, "out batch *space"]:
        """Features and the global value to the output fields."""
        shift = self.local.bias[:, None]
        if self.broadcast is not None and value is not None:
            shift = (self.broadcast(value) + self.local.bias).T
        return feed_forward(features, self.local.weight, shift, None, "gelu", self.out.weight, self.out.bias)


def feed_forward(
    field: Float[Tensor, "channel batch *space"],
    first: Float[Tensor, "hidden channel"],
    shift: Float[Tensor, "hidden samples"],
    scale: Float[Tensor, "hidden samples"] | None,
    activation: str,
    last: Float[Tensor, "out hidden"],
    bias: Float[Tensor, " out"],
    start: Float[Tensor, "out batch *space"] | None = None,
) -> Float[Tensor, "out batch *space"]:
    """The file's equation."""
    given = field, first, shift, scale, activation, last, bias, start
    if transformed() or observed() or torch.compiler.is_compiling() or field.device.type != "cpu":
        return plain_feed_forward(*given)
    if not torch.is_grad_enabled():
        return _FeedForward.forward(None, *given)
    out: Tensor = _FeedForward.apply(*given)  # type: ignore[no-untyped-call]
    return out


def plain_feed_forward(
    field: Tensor,
    first: Tensor,
    shift: Tensor,
    scale: Tensor | None,
    activation: str,
    last: Tensor,
    bias: Tensor,
    start: Tensor | None = None,
) -> Tensor:
    """The file's equation, all cells at once."""
    broadcast = (*shift.shape, *[1] * (field.ndim - 2))
    hidden = pointwise(first, None, field)
    if scale is None:
        hidden = hidden + shift.view(broadcast)
    else:
        hidden = torch.addcmul(shift.view(broadcast), scale.view(broadcast), hidden)
    out = pointwise(last, bias, activate(activation, hidden))
    return out if start is None else start + out


class _FeedForward(torch.autograd.Function):
    """Forward and backward of `feed_forward`."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        field, first, shift, scale, name, last, bias, start = given
        function = ACTIVATIONS[name]
        if ctx is not None:
            ctx.has_start, ctx.activation = start is not None, name
            ctx.save_for_backward(field, first, shift, scale, last, bias)
        out: Tensor = field.new_empty(last.shape[0], *field.shape[1:])
        target, cells = out.flatten(2), field.flatten(2)
        kept = None if start is None else start.flatten(2)
        for at in _pieces(cells.shape):
            hidden = _before(cells[at].contiguous(), first, scale, shift, at)
            result = product(last, function.in_place(hidden).flatten(1)).view(-1, *hidden.shape[1:])
            if kept is None:
                torch.add(result, bias[:, None, None], out=target[at])
            else:
                torch.add(kept[at], result.add_(bias[:, None, None]), out=target[at])
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        field, first, shift, scale, last, bias = ctx.saved_tensors
        by_start = gradients[0] if ctx.has_start else None
        if torch.is_grad_enabled():  # of second order
            found = differentiable(
                plain_feed_forward, gradients[0], field, first, shift, scale, ctx.activation, last, bias
            )
            return (*found, by_start)
        function = ACTIVATIONS[ctx.activation]
        cells, above = field.flatten(2), gradients[0].flatten(2)
        below = torch.empty_like(cells)
        by_first, by_last, by_shift = torch.zeros_like(first), torch.zeros_like(last), torch.zeros_like(shift)
        by_scale = torch.zeros_like(shift)
        for at in _pieces(cells.shape):
            inputs, slope = (each[at].contiguous() for each in (cells, above))
            hidden = _before(inputs, first, scale, shift, at)
            slopes = function.backward(product(last.T, slope.flatten(1)).view(hidden.shape), hidden)
            by_last += product(slope.flatten(1), function.in_place(hidden).flatten(1).T)
            sums = slopes.sum(2)
            if shift.shape[1] == 1:
                by_shift += sums.sum(1, keepdim=True)
            else:
                by_shift[:, at[1]] += sums
            if scale is None:
                by_first += product(slopes.flatten(1), inputs.flatten(1).T)
            else:
                # The gradient of scale W_1, one matrix a sample, has those of both factors.
                matrices = torch.bmm(slopes.transpose(0, 1), inputs.permute(1, 2, 0))
                by_first += torch.einsum("hb,bhi->hi", scale[:, at[1]], matrices)
                by_scale[:, at[1]] += torch.einsum("hi,bhi->hb", first, matrices)
                slopes *= _of(scale, at)
            below[at] = product(first.T, slopes.flatten(1)).view(-1, *slopes.shape[1:])
        found = below.view(field.shape), by_first, by_shift, None if scale is None else by_scale
        return (*found, None, by_last, above.sum((1, 2)), by_start)


def _pieces(shape: torch.Size) -> Iterator[tuple[slice, slice, slice]]:
    """Where the pieces of `(channel, batch, cells)` are: some whole samples each, or a part of one."""
    _, batch, cells = shape
    samples, count = max(1, PIECE // cells), -(-cells // PIECE)
    size = -(-cells // count)
    for sample in range(0, batch, samples):
        for cell in range(0, cells, size):
            yield slice(None), slice(sample, sample + samples), slice(cell, cell + size)


def _of(values: Tensor, at: tuple[slice, ...]) -> Tensor:
    """The numbers `(hidden, samples, 1)` of a piece."""
    return (values if values.shape[1] == 1 else values[:, at[1]])[..., None]


def _before(inputs: Tensor, first: Tensor, scale: Tensor | None, shift: Tensor, at: tuple[slice, ...]) -> Tensor:
    """Scale W_1 v + shift of a piece `(hidden, samples, cells)`."""
    hidden = product(first, inputs.flatten(1)).view(-1, *inputs.shape[1:])
    if scale is None:
        return hidden.add_(_of(shift, at))
    return torch.addcmul(_of(shift, at), _of(scale, at), hidden, out=hidden)
