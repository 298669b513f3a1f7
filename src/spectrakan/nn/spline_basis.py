"""All B-splines of an input with straight continuation, with the gradient written out.

With a = x - t for the knots t around x, degree p comes from degree p - 1 by
    share_r = B_r / (a_below - a_above),     B_j <- a_below share_{j-1} - a_above share_j,
and the gradient runs the same steps backwards, adding into one array. Past the grid x stays at its end, and
the slope there goes on: B(x) = B(end) + (x - end) B'(end). Left to autograd, each step would be several small
operations with a gradient of its own, and these are most of what a small KAN costs.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.numerics import bspline


def extended_basis(
    x: Float[Tensor, "inputs batch"], knots: Float[Tensor, "inputs knots"], order: int
) -> Float[Tensor, "inputs basis batch"]:
    """All basis functions at x, going straight on beyond the grid."""
    basis: Tensor = _ExtendedBasis.apply(x, knots, order)  # type: ignore[no-untyped-call]
    return basis


def plain_extended_basis(x: Tensor, knots: Tensor, order: int) -> Tensor:
    """The same as it is written on paper, differentiable as often as one likes."""
    first, last = knots[:, order, None], knots[:, -order - 1, None]
    held = torch.minimum(torch.maximum(x, first), last)
    intervals = knots.shape[1] - 2 * order - 1
    interval = bspline.find_interval(held, knots).clamp(order, order + intervals - 1)
    local = bspline.local_basis(held, knots, interval, order, x - held)
    places = interval[:, None] + torch.arange(-order, 1, device=x.device)[:, None]
    return x.new_zeros(x.shape[0], intervals + order, x.shape[1]).scatter(1, places, local)


class _ExtendedBasis(torch.autograd.Function):
    """Forward and backward of `extended_basis`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, knots: Tensor, order: int) -> Tensor:
        inputs, batch = x.shape
        count = knots.shape[1]
        held = torch.clamp(x, knots[:, order, None], knots[:, count - order - 1, None]).contiguous()
        inner = knots[:, order + 1 : count - order - 1].contiguous()
        interval = torch.searchsorted(inner, held, right=True)[:, None]
        places = interval + torch.arange(2 * order + 1, device=x.device)[:, None]
        near = places[:, 1:]
        away = held[:, None] - knots.gather(1, near.reshape(inputs, -1)).view(near.shape)
        beyond = (x - held).mul_(order)[:, None]
        basis, steps = torch.ones_like(x)[:, None], []
        for degree in range(1, order + 1):
            below, above = away[:, order - degree : order], away[:, order : order + degree]
            gaps = below - above
            shares = basis / gaps
            steps += [shares, gaps]
            if degree == order:
                below, above = below + beyond, above + beyond
            basis = x.new_empty(inputs, degree + 1, batch)
            basis[:, 0] = 0
            torch.mul(below, shares, out=basis[:, 1:])
            basis[:, :-1].addcmul_(above, shares, value=-1)
        ctx.order = order
        ctx.save_for_backward(x, knots, held, places, away, beyond, *steps)
        return x.new_zeros(inputs, count - order - 1, batch).scatter_(1, places[:, : order + 1], basis)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, knots, held, places, away, beyond, *steps = ctx.saved_tensors
        order = ctx.order
        if torch.is_grad_enabled():  # somebody differentiates this gradient: take the plain way
            plain = plain_extended_basis(x, knots, order)
            return *torch.autograd.grad(plain, (x, knots), gradients, create_graph=True), None
        gradient = gradients[0].gather(1, places[:, : order + 1])
        into_away, into_beyond = torch.zeros_like(away), held
        for degree in range(order, 0, -1):
            shares, gaps = steps[2 * degree - 2 : 2 * degree]
            below, above = away[:, order - degree : order], away[:, order : order + degree]
            rising, falling = gradient[:, 1:], gradient[:, :-1]
            if degree == order:
                below, above = below + beyond, above + beyond
                into_beyond = ((rising - falling) * shares).sum(1).mul_(order)
            gradient = (rising * below).addcmul_(falling, above, value=-1).div_(gaps)
            into_away[:, order - degree : order].addcmul_(shares, rising - gradient)
            into_away[:, order : order + degree].addcmul_(shares, falling - gradient, value=-1)
        into_held = into_away.sum(1)
        near = places[:, 1:].reshape(x.shape[0], -1)
        into_knots = torch.zeros_like(knots).scatter_add_(1, near, into_away.neg_().view(near.shape))
        # Past an end x moves only what lies beyond, and the end, where x is held, is a knot.
        outside = torch.where(x == held, 0.0, into_held - into_beyond)
        past = x > held
        into_knots[:, knots.shape[1] - order - 1] += (outside * past).sum(1)
        into_knots[:, order] += (outside * ~past).sum(1)
        return into_held - outside, into_knots, None
