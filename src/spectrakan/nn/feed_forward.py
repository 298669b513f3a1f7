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
from spectrakan.nn.products import sample_major

PIECE = 2048
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
        self.first, self.scale, self.last, self.function = first, scale, last, ACTIVATIONS[activation]
        self.bias = bias[:, None, None]
        self.weights = first[None] if scale is None else scale.T[..., None] * first
        self.shifts = shift.T[..., None]
        if backward:
            sums = (torch.zeros_like(each) for each in (self.weights, self.shifts, last, bias))
            self.by_weights, self.by_shifts, self.by_last, self.by_bias = sums

    def run(self, cells: Tensor, start: Tensor | None, target: Tensor, first: int = 0) -> None:
        """`start` and the network into `target` `(out, batch, cells)`, for the samples from number `first`."""
        for at, samples in _pieces(cells.shape, first):
            hidden = torch.bmm(_of(self.weights, samples), cells[at].transpose(0, 1))
            hidden = self.function.in_place(hidden.add_(_of(self.shifts, samples)))
            if start is None:
                target[at] = self.bias
            else:
                torch.add(start[at], self.bias, out=target[at])
            target[at].transpose(0, 1).baddbmm_(_of(self.last[None], samples), hidden)

    def pull(self, cells: Tensor, above: Tensor, below: Tensor, first: int = 0) -> None:
        """From the gradient above to that of the field, into `below`; adds to the sums."""
        for at, samples in _pieces(cells.shape, first):
            inputs, slope, weights = cells[at].transpose(0, 1), above[at].transpose(0, 1), _of(self.weights, samples)
            # Cells before channels: sums over cells are then products without a transposed factor, twice as fast.
            hidden = torch.bmm(inputs.mT, weights.mT).add_(_of(self.shifts, samples).mT)
            slopes = self.function.backward(torch.bmm(slope.mT, _of(self.last[None], samples)), hidden)
            self.by_last += torch.bmm(slope, self.function.in_place(hidden)).sum(0)
            self.by_bias += slope.sum((0, 2))
            _add(self.by_weights, samples, torch.bmm(inputs, slopes).mT)
            _add(self.by_shifts, samples, slopes.sum(1)[..., None])
            torch.bmm(weights.mT, slopes.mT, out=below[at].transpose(0, 1))

    def gradients(self) -> tuple[Tensor | None, ...]:
        """Those of the arguments of `__init__`."""
        by_first, by_scale = self.by_weights[0], None
        if self.scale is not None:
            by_scale = torch.einsum("bhi,hi->hb", self.by_weights, self.first)
            by_first = torch.einsum("hb,bhi->hi", self.scale, self.by_weights)
        return by_first, self.by_shifts[..., 0].T, by_scale, None, self.by_last, self.by_bias


class _FeedForward(torch.autograd.Function):
    """Forward and backward of `feed_forward`."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        field, first, shift, scale, name, last, bias, start = given
        if ctx is not None:
            ctx.has_start, ctx.activation = start is not None, name
            ctx.save_for_backward(field, first, shift, scale, last, bias)
        out = sample_major(field, last.shape[0])
        kept = None if start is None else start.flatten(2)
        Maps(first, shift, scale, name, last, bias).run(field.flatten(2), kept, out.flatten(2))
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        field, first, shift, scale, last, bias = ctx.saved_tensors
        by_start = gradients[0] if ctx.has_start else None
        given = first, shift, scale, ctx.activation, last, bias
        if torch.is_grad_enabled():  # of second order
            return *differentiable(plain_feed_forward, gradients[0], field, *given), by_start
        maps, out = Maps(*given, backward=True), sample_major(field, field.shape[0])
        maps.pull(field.flatten(2), gradients[0].flatten(2), out.flatten(2))
        return out, *maps.gradients(), by_start


Place = tuple[slice, slice, slice]


def _pieces(shape: torch.Size, first: int) -> Iterator[tuple[Place, slice]]:
    """Where the pieces of `(channel, batch, cells)` are, some whole samples each or a part of one; their samples."""
    _, batch, cells = shape
    samples, count = max(1, PIECE // cells), -(-cells // PIECE)
    size = -(-cells // count)
    for sample in range(0, batch, samples):
        end = min(batch, sample + samples)
        for cell in range(0, cells, size):
            yield (slice(None), slice(sample, end), slice(cell, cell + size)), slice(first + sample, first + end)


def _of(maps: Tensor, samples: slice) -> Tensor:
    """The maps of some samples."""
    return maps[samples] if len(maps) > 1 else maps.expand(samples.stop - samples.start, *maps.shape[1:])


def _add(total: Tensor, samples: slice, parts: Tensor) -> None:
    """Add what some samples give, each to its own map or all to the one that they share."""
    if len(total) > 1:
        total[samples] += parts
    else:
        total += parts.sum(0)
