"""A residual block as one operation: v + FF(K v), from the transforms to the sum a sample at a time.

The parts are `nn/axial` and `nn/feed_forward`. Between them a sample stays in the processor's cache, and the two
paths of the gradient are added there.
Shapes: fields `(channel, batch, *space)`.
"""

from typing import Any

import torch
from torch import Tensor

from spectrakan.nn.axial import Axial, samples_of
from spectrakan.nn.execution import differentiable
from spectrakan.nn.feed_forward import Maps, plain_feed_forward
from spectrakan.nn.products import sample_major
from spectrakan.nn.spectral import plain_axial

NETWORK = 6
"""Arguments of the pointwise network."""


def plain_residual(field: Tensor, *given: Any) -> Tensor:
    """The block in plain operations; arguments as of `ResidualBlock`."""
    first, shift, scale, activation, last, bias, *parts = given
    return plain_feed_forward(plain_axial(field, *parts), first, shift, scale, activation, last, bias, field)


class ResidualBlock(torch.autograd.Function):
    """`apply(field, first, shift, scale, activation, last, bias, *parts)`: see `feed_forward` and `nn/axial.Part`."""

    @staticmethod
    def forward(ctx: Any, field: Any, *given: Any) -> Tensor:
        """The block."""
        axial, maps, kept = Axial(given[NETWORK:], keep=ctx is None), Maps(*given[:NETWORK]), []
        out, between = sample_major(field, field.shape[0]), None
        for at in samples_of(field):
            if ctx is not None or between is None:
                between = sample_major(field[:, at], field.shape[0])
            rows = axial.run(field[:, at], between, at)
            maps.run(between.flatten(2), field[:, at].flatten(2), out[:, at].flatten(2), at.start)
            kept += [between, *rows] if ctx is not None else []
        if ctx is not None:
            ctx.given = [each if isinstance(each, str) else None for each in given]
            tensors = [each for each in given if not isinstance(each, str)]
            ctx.save_for_backward(field, *tensors, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all arguments."""
        field, *saved = ctx.saved_tensors
        queue = iter(saved)
        given = [name if name is not None else next(queue) for name in ctx.given]
        if torch.is_grad_enabled():  # of second order
            return differentiable(plain_residual, gradients[0], field, *given)
        axial, maps = Axial(given[NETWORK:], backward=True), Maps(*given[:NETWORK], backward=True)
        above, below, slopes = gradients[0], sample_major(field, field.shape[0]), None
        for at in samples_of(field):
            between = next(queue)
            slopes = torch.empty_like(between) if slopes is None else slopes
            maps.pull(between.flatten(2), above[:, at].flatten(2), slopes.flatten(2), at.start)
            axial.pull(slopes, below[:, at], at, queue)
            below[:, at] += above[:, at]
        return below, *maps.gradients(), *axial.gradients()
