"""Residual layers v + FF(K v), one after the other; a chain of them is one operation, some samples at a time.

The parts are `nn/axial` and `nn/feed_forward`; both sum their gradients in place. Between layers the cells of these
samples stay in the processor's cache. Results of layers are not kept: the gradient needs K v and the coefficients.
Shapes: fields `(channel, batch, *space)`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from spectrakan.nn.axial import Axial, Part, groups_of
from spectrakan.nn.axis import Axis, axis_transforms
from spectrakan.nn.execution import differentiable, fused
from spectrakan.nn.feed_forward import Maps, Network, feed_forward, plain_feed_forward
from spectrakan.nn.products import cells_of, dense, new_cells
from spectrakan.nn.spectral import AxialSpectral, Factors, plain_axial

NETWORK = len(Network._fields)


class ResidualLayer(NamedTuple):
    """K, the factors of its modes, and FF."""

    spectral: AxialSpectral
    factors: Factors
    network: Network


def residual_layers(field: Tensor, axes: Sequence[Axis], layers: Sequence[ResidualLayer]) -> Tensor:
    """The layers one after the other, `(channel, batch, *space)` to the same shape."""
    if layers and all(layer.spectral.fuses(field, axes) for layer in layers):
        given: list[Any] = []
        for spectral, factors, network in layers:
            transforms = axis_transforms(axes, spectral.bases, spectral.num_modes, field)
            given += [*network, *(each for part in spectral.parts(transforms, factors) for each in part)]
        return cast(Tensor, fused(ResidualBlocks, len(layers), field, *given))
    for spectral, factors, network in layers:
        field = feed_forward(spectral(field, axes, factors), network, field)
    return field


def plain_residual(count: int, field: Tensor, *given: Any) -> Tensor:
    """The blocks in plain operations; arguments as of `ResidualBlocks`."""
    for block in _by_block(count, given):
        field = plain_feed_forward(field, plain_axial(field, *block[NETWORK:]), *block[:NETWORK])
    return field


class ResidualBlocks(torch.autograd.Function):
    """`apply(count, field, *given)`: for each block the arrays of a `Network` and those of each axis' `Part`."""

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
