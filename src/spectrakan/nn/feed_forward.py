"""The pointwise network with one hidden layer, a piece of the cells at a time; as a readout R([f, A]) too.

    u(x) = start(x) + W_2 sigma(scale W_1 v(x) + shift) + b_2,     R([f, A]) = W_2 gelu(W_1 f(x) + W_A A + b_1) + b_2

Scale and shift have one number a hidden channel, the same for all samples or one set a sample. The hidden channels of
all cells together are the largest array of a network; those of a piece stay in the processor's cache, and the
backward pass computes them again instead of keeping them.
`plain_feed_forward` is the same in plain operations: the reference of the tests, and the form that is traced,
transformed and certified.
Shapes: fields `(channel, batch, *space)`, scale and shift `(hidden, batch or 1)`.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.execution import differentiable, plain_forms
from spectrakan.nn.pointwise import ACTIVATIONS, activate, pointwise
from spectrakan.nn.products import cells_of, linear, new_cells, products

PIECE = 2**13
"""Most cells of a piece of one sample; four times those of whole samples, whose products are smaller."""


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
    if plain_forms() or field.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return plain_feed_forward(*given)  # the fused form takes arrays of one type
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


class Maps:
    """The maps of the file's head, their passes over some samples, and the sums of their gradients."""

    def __init__(
        self,
        first: Tensor,
        shift: Tensor,
        scale: Tensor | None,
        activation: str,
        last: Tensor,
        bias: Tensor,
        *,
        backward: bool = False,
    ) -> None:
        self.first, self.scale, self.last, self.bias = first, scale, last, bias
        self.activation, self.function = activation, ACTIVATIONS[activation]
        self.weights = first[None] if scale is None else (scale.T[..., None] * first).contiguous()
        self.shifts = shift.T.contiguous()
        if backward:
            self.by_last, self.by_bias = torch.zeros_like(last), torch.zeros_like(bias)
            self.by_weights, self.by_shifts = torch.zeros_like(self.weights.mT), torch.zeros_like(self.shifts)

    def run(self, cells: Tensor, start: Tensor | None, target: Tensor, first: int = 0) -> None:
        """`start` and the network into `target` `(batch, cells, out)`, for the samples from number `first`."""
        cells, target = self._joined(cells), self._joined(target)
        start = None if start is None else self._joined(start)
        for at, samples in self._pieces(cells, first):
            hidden = linear(cells[at], _of(self.weights, samples), _of(self.shifts, samples), self.activation)
            found = linear(hidden, self.last[None], self.bias[None])
            if start is None:
                target[at] = found
            else:
                torch.add(start[at], found, out=target[at])

    def pull(self, cells: Tensor, above: Tensor, below: Tensor, first: int = 0) -> None:
        """From the gradient above to that of the field, into `below`; adds to the sums."""
        cells, above, below = self._joined(cells), self._joined(above), self._joined(below)
        for at, samples in self._pieces(cells, first):
            weights, slope = _of(self.weights, samples), above[at]
            hidden = linear(cells[at], weights, _of(self.shifts, samples))
            slopes = self.function.backward(linear(slope, self.last.T[None]), hidden)
            self.by_last += products(slope.mT, self.function.in_place(hidden)).sum(0)
            self.by_bias += slope.sum((0, 1))
            _add(self.by_weights, samples, products(cells[at].mT, slopes))
            _add(self.by_shifts, samples, slopes.sum(1))
            below[at] = linear(slopes, weights.mT)

    def _joined(self, cells: Tensor) -> Tensor:
        """The cells of all samples as those of one, where all samples share the maps."""
        return cells.view(1, -1, cells.shape[-1]) if len(self.weights) == len(self.shifts) == 1 else cells

    def _pieces(self, cells: Tensor, first: int) -> Iterator[tuple[tuple[slice, slice], slice]]:
        """Where the pieces are, some whole samples each or a part of one; the numbers of their samples."""
        batch, count = cells.shape[:2]
        samples, parts = max(1, PIECE // (4 * count)), -(-count // PIECE)
        size = -(-count // parts)
        for sample in range(0, batch, samples):
            end = min(batch, sample + samples)
            for cell in range(0, count, size):
                yield (slice(sample, end), slice(cell, cell + size)), slice(first + sample, first + end)

    def gradients(self) -> tuple[Tensor | None, ...]:
        """Those of the arguments of `__init__`."""
        by_first, by_scale = self.by_weights[0].T, None
        if self.scale is not None:
            by_scale = torch.einsum("bih,hi->hb", self.by_weights, self.first)
            by_first = torch.einsum("hb,bih->hi", self.scale, self.by_weights)
        return by_first, self.by_shifts.T, by_scale, None, self.by_last, self.by_bias


class _FeedForward(torch.autograd.Function):
    """Forward and backward of `feed_forward`."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        field, first, shift, scale, name, last, bias, start = given
        if ctx is not None:
            ctx.has_start, ctx.activation = start is not None, name
            ctx.save_for_backward(field, first, shift, scale, last, bias)
        out, target = new_cells(field, len(last))
        kept = None if start is None else cells_of(start).flatten(1, -2)
        Maps(first, shift, scale, name, last, bias).run(cells_of(field).flatten(1, -2), kept, target.flatten(1, -2))
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        field, first, shift, scale, last, bias = ctx.saved_tensors
        by_start = gradients[0] if ctx.has_start else None
        given = first, shift, scale, ctx.activation, last, bias
        if torch.is_grad_enabled():  # of second order
            return *differentiable(plain_feed_forward, gradients[0], field, *given), by_start
        maps, (out, target) = Maps(*given, backward=True), new_cells(field, len(field))
        cells, above = (cells_of(each).flatten(1, -2) for each in (field, gradients[0]))
        maps.pull(cells, above, target.flatten(1, -2))
        return out, *maps.gradients(), by_start


def _of(maps: Tensor, samples: slice) -> Tensor:
    """The maps of some samples, or the one that they share."""
    return maps[samples] if len(maps) > 1 else maps


def _add(total: Tensor, samples: slice, parts: Tensor) -> None:
    """Add what some samples give, each to its own map or all to the one that they share."""
    if len(total) > 1:
        total[samples] += parts
    else:
        total += parts.sum(0)
