"""A layer of spline edges as one operation with its own gradient: what `nn/kan` computes, in few passes.

    y = (w_s c) B(x) + w_b silu(x),     B the splines with straight continuation

Of the k + 1 splines that live on the interval of x, those of degree p come from those of degree p - 1 by
    s_j = B_j / (h_j - l_j),     B_j' = (x - l_{j-1}) s_{j-1} - (x - h_j) s_j,     l, h the knots below and above,
so the gradient g of B' gives, with q = (g_{j+1} - g_j) / (h_j - l_j), g_{j+1} + (x - h_j) q for B_j,
(x - h_j) s_j q for l_j and -(x - l_j) s_j q for h_j. That of x is minus the sum of those of the knots.
Shapes: x `(in, batch)`, weights and knots as in `nn/kan`.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.execution import differentiable
from spectrakan.nn.products import product
from spectrakan.numerics import bspline


class SplineLayer(torch.autograd.Function):
    """`apply(x, knots, base_weight, spline_weight, coefficients, order)` -> `(out, batch)`."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        """Values; without a context nothing is saved for the gradient."""
        x, knots, base, scale, coefficients, order = given
        inputs, batch = x.shape
        held = torch.clamp(x, knots[:, order, None], knots[:, -order - 1, None])
        step = (x - held).mul_(order)
        found = torch.searchsorted(knots[:, order + 1 : -order - 1].contiguous(), held, right=True)
        index = found[:, None] + torch.arange(2 * order + 1, device=x.device)[:, None]
        near = knots.gather(1, index[:, 1:].flatten(1)).view(inputs, 2 * order, batch)
        away, widths, shares = held[:, None] - near, [], []
        basis = x.new_zeros(inputs, order + 1, batch)
        for degree in range(1, order + 1):
            below, above = away[:, order - degree : order], away[:, order : order + degree]
            widths.append(below - above)
            share = widths[-1].reciprocal() if degree == 1 else basis[:, order + 1 - degree :] / widths[-1]
            if degree == order:
                away.add_(step[:, None])  # the slope is k (s_{j-1} - s_j): continuing straight shifts both factors
            torch.mul(below, share, out=basis[:, order + 1 - degree :])
            basis[:, order - degree : order].addcmul_(above, share, value=-1)
            shares.append(share)
        local, curve = index[:, : order + 1], F.silu(x)
        splines = x.new_zeros(inputs, coefficients.shape[-1], batch).scatter_(1, local, basis).flatten(0, 1)
        weight = (scale[..., None] * coefficients).flatten(1)
        if ctx is not None:
            ctx.save_for_backward(*given[:5], step, index, away, curve, splines, weight, *widths, *shares)
            ctx.order = order
        return product(weight, splines).add_(product(base, curve))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all but the order."""
        order, gradient = ctx.order, gradients[0].contiguous()
        if torch.is_grad_enabled():  # of second order
            return differentiable(_plain, gradient, *ctx.saved_tensors[:5], order)
        x, knots, base, scale, coefficients, step, index, away, curve, splines, weight, *parts = ctx.saved_tensors
        widths, shares = parts[:order], parts[order:]
        by_splines = product(weight.T, gradient).view(len(x), -1, x.shape[1])
        by_basis, by_near, by_step = by_splines.gather(1, index[:, : order + 1]), torch.zeros_like(away), step
        for degree in range(order, 0, -1):
            below, above = away[:, order - degree : order], away[:, order : order + degree]
            share, after = shares[degree - 1], by_basis[:, 1:]
            rise = after - by_basis[:, :-1]
            if degree == order:
                by_step = (share * rise).sum(1).mul_(order)
            rise /= widths[degree - 1]
            by_basis = torch.addcmul(after, above, rise)
            rise *= share
            by_near[:, order - degree : order].addcmul_(above, rise)
            by_near[:, order : order + degree].addcmul_(below, rise, value=-1)
            if degree == order:
                away = away - step[:, None]
        by_held = by_near.sum(1).neg_()
        by_knots = torch.zeros_like(knots).scatter_add_(1, index[:, 1:].flatten(1), by_near.flatten(1))
        outside = by_held - by_step
        by_knots[:, order] += outside.masked_fill(step >= 0, 0).sum(1)
        by_knots[:, -order - 1] += outside.masked_fill_(step <= 0, 0).sum(1)
        by_x = torch.where(step == 0, by_held, by_step)
        by_x += torch.ops.aten.silu_backward(product(base.T, gradient), x)
        by_weight = product(gradient, splines.T).view(coefficients.shape)
        by_scale = (by_weight * coefficients).sum(2)
        return by_x, by_knots, product(gradient, curve.T), by_scale, by_weight.mul_(scale[..., None]), None


def plain_layer(x: Tensor, basis: Tensor, base: Tensor, scale: Tensor, coefficients: Tensor) -> Tensor:
    """The file's equation from all splines at x `(in, splines, batch)`, in plain operations."""
    weights = (scale[..., None] * coefficients).flatten(1)
    return torch.addmm(base @ F.silu(x), weights, basis.flatten(0, 1))


def _plain(x: Tensor, knots: Tensor, base: Tensor, scale: Tensor, coefficients: Tensor, order: int) -> Tensor:
    return plain_layer(x, extended_basis(x, knots, order), base, scale, coefficients)


def extended_basis(
    x: Float[Tensor, "inputs batch"], knots: Float[Tensor, "inputs knots"], order: int
) -> Float[Tensor, "inputs basis batch"]:
    """All basis functions at x, continued as straight lines beyond the grid: B(end) + (x - end) B'(end)."""
    first, last = knots[:, order, None], knots[:, -order - 1, None]
    held = torch.minimum(torch.maximum(x, first), last)
    intervals = knots.shape[1] - 2 * order - 1
    interval = bspline.find_interval(held, knots).clamp(order, order + intervals - 1)
    local = bspline.local_basis(held, knots, interval, order, x - held)
    basis = interval[:, None] + torch.arange(-order, 1, device=x.device)[:, None]
    return x.new_zeros(x.shape[0], intervals + order, x.shape[1]).scatter(1, basis, local)
