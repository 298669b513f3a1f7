"""The local B-splines of `numerics.bspline.basis_from_knots`, with the gradient written out.

With a = x - t for the knots t around x, degree p comes from degree p - 1 by
    share_r = B_r / (a_below - a_above),     B_j <- a_below share_{j-1} - a_above share_j,
and the gradient runs the same steps backwards, adding into one array. Left to autograd, each slice of `a` would
have a gradient of full size to be filled and summed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spectrakan.numerics.bspline import basis_from_knots


def local_basis(x: Tensor, near: Tensor, beyond: Tensor) -> Tensor:
    """B(x) + beyond B'(x): `(inputs, batch)`, near `(inputs, 2 order, batch)` -> `(inputs, order + 1, batch)`."""
    basis: Tensor = _LocalBasis.apply(x, near, beyond)  # type: ignore[no-untyped-call]
    return basis


class _LocalBasis(torch.autograd.Function):
    """Forward as in `basis_from_knots`; see the file's equations."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, near: Tensor, beyond: Tensor) -> Tensor:
        order = near.shape[1] // 2
        away = x[:, None] - near
        step = order * beyond[:, None]
        basis = torch.ones_like(x)[:, None]
        saved = []
        for degree in range(1, order + 1):
            below, above = away[:, order - degree : order], away[:, order : order + degree]
            shares = basis / (below - above)
            saved.append(shares)
            if degree == order:
                below, above = below + step, above + step
            basis = shares.new_empty(shares.shape[0], degree + 1, shares.shape[2])
            basis[:, 0] = 0
            torch.mul(below, shares, out=basis[:, 1:])
            basis[:, :-1].addcmul_(above, shares, value=-1)
        ctx.save_for_backward(x, near, beyond, *saved)
        return basis

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        x, near, beyond, *saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody differentiates this gradient: take the plain way
            return torch.autograd.grad(
                basis_from_knots(x, near, beyond), (x, near, beyond), gradients, create_graph=True
            )
        order = len(saved)
        away = x[:, None] - near
        step = order * beyond[:, None]
        out, slope = torch.zeros_like(away), torch.zeros_like(x)
        gradient = gradients[0]
        for degree in range(order, 0, -1):
            shares = saved[degree - 1]
            below, above = away[:, order - degree : order], away[:, order : order + degree]
            gap = below - above
            if degree == order:
                below, above = below + step, above + step
            rising, falling = gradient[:, 1:], gradient[:, :-1]
            into_shares = (rising * below).addcmul_(falling, above, value=-1).div_(gap)
            rising, falling = rising * shares, falling * shares
            if degree == order:
                slope = order * (rising - falling).sum(1)
            into_gap = into_shares * shares
            out[:, order - degree : order].add_(rising).sub_(into_gap)
            out[:, order : order + degree].sub_(falling).add_(into_gap)
            gradient = into_shares
        return out.sum(1), out.neg_(), slope
