"""A chain of residual blocks v + FF(K v) as one operation, some samples at a time through all of them.

The parts are `nn/axial` and `nn/feed_forward`; both sum their gradients in place. Between blocks the cells of these
samples stay in the processor's cache. Results of blocks are not kept: the gradient needs K v and the coefficients.
Shapes: fields `(channel, batch, *space)`.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from spectrakan.nn.axial import Axial, Part, groups_of
from spectrakan.nn.execution import differentiable
from spectrakan.nn.feed_forward import Maps, plain_feed_forward
from spectrakan.nn.products import cells_of, dense, new_cells
from spectrakan.nn.spectral import plain_axial

NETWORK = 6
"""Arguments of a block's pointwise network."""


def plain_residual(count: int, field: Tensor, *given: Any) -> Tensor:
    """The blocks in plain operations; arguments as of `ResidualBlocks`."""
    for block in _by_block(count, given):
        first, shift, scale, activation, last, bias, *parts = block
        network = first, shift, scale, activation, last, bias
        field = plain_feed_forward(plain_axial(field, *parts), *network, field)
    return field


class ResidualBlocks(torch.autograd.Function):
    """`apply(count, field, *given)`: for each block first, shift, scale, activation, last, bias and parts.

    See `feed_forward` and `nn/axial.Part`.
    """

    @staticmethod
    def forward(ctx: Any, count: int, field: Tensor, *given: Any) -> Tensor:
        """The blocks."""
        blocks = [
            (Axial(block[NETWORK:], keep=ctx is None), Maps(*block[:NETWORK])) for block in _by_block(count, given)
        ]
        cells, (out, target), kept = cells_of(field), new_cells(field, len(field)), []
        groups = groups_of(cells)
        for at in groups:
            now = dense(cells[at])
            for number, (axial, maps) in enumerate(blocks, 1):
                between, rows = axial.run(now, at)
                result = target[at] if number == count else torch.empty_like(now)
                maps.run(between, now, result, at.start)
                kept += [between, *rows] if ctx is not None else []
                now = result
        if ctx is not None:
            ctx.count, ctx.groups = count, groups
            ctx.given = [each if isinstance(each, str) else None for each in given]
            tensors = [each for each in given if not isinstance(each, str)]
            ctx.save_for_backward(field, *tensors, *(each for axial, _ in blocks for each in axial.matrices), *kept)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all arguments."""
        field, *saved = ctx.saved_tensors
        queue, count = iter(saved), ctx.count
        given = [name if name is not None else next(queue) for name in ctx.given]
        if torch.is_grad_enabled():  # of second order
            return None, *differentiable(
                lambda *all_given: plain_residual(count, *all_given), gradients[0], field, *given
            )
        blocks = []
        for block in _by_block(count, given):
            matrices = [next(queue) for _ in range((len(block) - NETWORK) // len(Part._fields))]
            blocks.append((Axial(block[NETWORK:], matrices=matrices), Maps(*block[:NETWORK], backward=True)))
        above, (below, target) = cells_of(gradients[0]), new_cells(field, len(field))
        for at in ctx.groups:
            kept = [[next(queue) for _ in range(1 + len(axial.parts))] for axial, _ in blocks]
            now = dense(above[at])
            slopes = torch.empty_like(now)
            for number in reversed(range(count)):
                (axial, maps), (between, *rows) = blocks[number], kept[number]
                maps.pull(between, now, slopes, at.start)
                now = axial.pull(slopes, at, iter(rows), None if number else target[at]).add_(now)
        found = [each for axial, maps in blocks for each in (*maps.gradients(), *axial.gradients())]
        return None, below, *found


def _by_block(count: int, given: Any) -> Iterator[Any]:
    """The arguments of each block."""
    size = len(given) // count
    return (given[start : start + size] for start in range(0, len(given), size))
