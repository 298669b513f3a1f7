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
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.execution import differentiable, fused, plain_forms
from spectrakan.nn.pointwise import ACTIVATIONS, activate, pointwise
from spectrakan.nn.products import cells_of, in_memory, linear, new_cells, product

PIECE = 2**13
"""Most cells of a piece, for each of torch's threads. Samples of a quarter of it are taken together, larger ones each
by itself."""


class Network(NamedTuple):
    """The arrays and the nonlinearity of the file's equation."""

    first: Float[Tensor, "hidden channel"]
    shift: Float[Tensor, "hidden samples"]
    scale: Float[Tensor, "hidden samples"] | None
    activation: str
    last: Float[Tensor, "out hidden"]
    bias: Float[Tensor, " out"]


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
        return feed_forward(features, Network(self.local.weight, shift, None, "gelu", self.out.weight, self.out.bias))


def feed_forward(
    field: Float[Tensor, "channel batch *space"],
    network: Network,
    start: Float[Tensor, "out batch *space"] | None = None,
) -> Float[Tensor, "out batch *space"]:
    """The file's equation."""
    if plain_forms() or field.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return plain_feed_forward(start, field, *network)  # the fused form takes arrays of one type
    return cast(Tensor, fused(_FeedForward, start, field, *network))


def plain_feed_forward(start: Tensor | None, field: Tensor, *network: Any) -> Tensor:
    """The file's equation, all cells at once."""
    first, shift, scale, activation, last, bias = network
    broadcast = (*shift.shape, *[1] * (field.ndim - 2))
    hidden = pointwise(first, None, field)
    if scale is None:
        hidden = hidden + shift.view(broadcast)
    else:
        hidden = torch.addcmul(shift.view(broadcast), scale.view(broadcast), hidden)
    out = pointwise(last, bias, activate(activation, hidden))
    return out if start is None else start + out


class Piece(NamedTuple):
    """Some cells in the order of memory, `(.., .., channel)` of each field: the samples lie along `side`, 0 or 1."""

    fields: list[Tensor]
    samples: slice
    side: int

    @property
    def single(self) -> bool:
        """Whether all cells have the same maps."""
        return bool(self.samples.stop - self.samples.start == 1)

    def spread(self, numbers: Tensor) -> Tensor:
        """Numbers `(sample, hidden)` of these samples for hidden channels `(.., .., hidden)`."""
        return numbers[self.samples].unsqueeze(1 - self.side)


class Maps:
    """A `Network`, its passes over some samples, and the sums of its gradients.

    Cells are `(batch, *space, channel)`, as `products.dense` has them. Scale and shift of one sample become part of a
    product. Those of several, which have few cells each, are applied after one product for all of them.
    """

    def __init__(self, *network: Any, backward: bool = False) -> None:
        self.first, shift, scale, self.activation, self.last, self.bias = Network(*network)
        self.function = ACTIVATIONS[self.activation]
        self.shifts, self.scales = shift.T.contiguous(), None if scale is None else scale.T.contiguous()
        if backward:
            self.by_first, self.by_last, self.by_bias = map(torch.zeros_like, (self.first, self.last, self.bias))
            self.by_shifts = torch.zeros_like(self.shifts)
            self.by_scales = torch.zeros_like(self.shifts)

    def run(self, cells: Tensor, start: Tensor | None, target: Tensor, number: int = 0) -> None:
        """`start` and the network into `target` `(batch, *space, out)`, for the samples from `number`."""
        for piece in self._pieces(number, cells, target, start):
            given, out, *before = piece.fields
            if piece.single:
                hidden = linear(given.flatten(0, 1), self._weight(piece), self._shift(piece), self.activation)
            else:
                inner = linear(given.flatten(0, 1), self.first).view(*given.shape[:2], -1)
                hidden = self.function.in_place(self._moved(inner, piece, out=inner)).flatten(0, 1)
            found = linear(hidden, self.last, self.bias).view(out.shape)
            if before:
                torch.add(before[0], found, out=out)
            else:
                out.copy_(found)

    def pull(self, cells: Tensor, above: Tensor, below: Tensor, number: int = 0) -> None:
        """From the gradient above to that of the field, into `below`; adds to the sums."""
        for piece in self._pieces(number, cells, above, below):
            given, above_here, out = piece.fields
            rows, slope = given.flatten(0, 1), above_here.flatten(0, 1)
            weight = self._weight(piece) if piece.single else self.first
            inner = linear(rows, weight, self._shift(piece) if piece.single else None).view(*given.shape[:2], -1)
            hidden = inner if piece.single else self._moved(inner, piece)
            slopes = self.function.backward(linear(slope, self.last.T).view(inner.shape), hidden)
            self.by_last += product(slope.T, self.function.in_place(hidden).flatten(0, 1))
            self.by_bias += slope.sum(0)
            self.by_shifts[piece.samples] += slopes.sum(1 - piece.side)
            if self.scales is not None and not piece.single:
                self.by_scales[piece.samples] += inner.mul_(slopes).sum(1 - piece.side)
                slopes *= piece.spread(self.scales)
            by_weight = product(rows.T, slopes.flatten(0, 1)).T
            if self.scales is not None and piece.single:
                self.by_scales[piece.samples] += (by_weight * self.first).sum(1)
                by_weight *= self.scales[piece.samples].T
            self.by_first += by_weight
            out.copy_(linear(slopes.flatten(0, 1), weight.T).view(out.shape))

    def _weight(self, piece: Piece) -> Tensor:
        """The first map with the scale of one sample."""
        return self.first if self.scales is None else self.scales[piece.samples].T * self.first

    def _shift(self, piece: Piece) -> Tensor:
        return self.shifts[piece.samples.start]

    def _moved(self, inner: Tensor, piece: Piece, out: Tensor | None = None) -> Tensor:
        """Scale and shift of several samples on what the first map gives."""
        if self.scales is None:
            return torch.add(inner, piece.spread(self.shifts), out=out)
        return torch.addcmul(piece.spread(self.shifts), inner, piece.spread(self.scales), out=out)

    def _pieces(self, number: int, *fields: Tensor | None) -> Iterator[Piece]:
        """The pieces of fields: some whole samples, a part of one, or on one axis a part of each."""
        lie = [in_memory(each) for each in fields if each is not None]
        side = 1 if lie[0].ndim == 3 else 0
        lie = [each.flatten(1, -2) for each in lie]
        if len(self.shifts) == 1 or lie[0].shape[side] == 1:
            lie, side = [each.reshape(1, -1, each.shape[-1]) for each in lie], 0
        (outer, inner), first = lie[0].shape[:2], number if len(self.shifts) > 1 else 0
        most = PIECE * torch.get_num_threads()
        rows = max(1, most // inner) if side == 1 or 4 * inner <= most else 1
        width = inner if rows > 1 or side == 1 else -(-inner // -(-inner // most))
        for row in range(0, outer, rows):
            for cell in range(0, inner, width):
                at = slice(row, min(outer, row + rows)), slice(cell, min(inner, cell + width))
                samples = slice(first + at[side].start, first + at[side].stop)
                yield Piece([each[at] for each in lie], samples, side)

    def gradients(self) -> tuple[Tensor | None, ...]:
        """Those of the arguments of `__init__`."""
        by_scale = None if self.scales is None else self.by_scales.T
        return self.by_first, self.by_shifts.T, by_scale, None, self.by_last, self.by_bias


class _FeedForward(torch.autograd.Function):
    """Forward and backward of `feed_forward`."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        start, field, *network = given
        first, shift, scale, name, last, bias = network
        if ctx is not None:
            ctx.has_start, ctx.activation = start is not None, name
            ctx.save_for_backward(field, first, shift, scale, last, bias)
        out, target = new_cells(field, len(last))
        Maps(*network).run(cells_of(field), None if start is None else cells_of(start), target)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        field, first, shift, scale, last, bias = ctx.saved_tensors
        by_start = gradients[0] if ctx.has_start else None
        given = first, shift, scale, ctx.activation, last, bias
        if torch.is_grad_enabled():  # of second order
            return by_start, *differentiable(plain_feed_forward, gradients[0], None, field, *given)[1:]
        maps, (out, target) = Maps(*given, backward=True), new_cells(field, len(field))
        maps.pull(cells_of(field), cells_of(gradients[0]), target)
        return by_start, out, *maps.gradients()
