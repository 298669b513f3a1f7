"""The splines of a KAN layer as polynomials, one a knot interval, in Bernstein form.

On [t_j, t_{j+1}] with s = (x - t_j) / (t_{j+1} - t_j) a spline of order k is sum_m p_m C(k, m) s^m (1 - s)^{k-m}.
It lies between its smallest and its largest p_m; its slope has the coefficients k (p_{m+1} - p_m) / (t_{j+1} - t_j).
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.nn.kan import KANLayer


@dataclass(frozen=True)
class EdgePieces:
    """All edges of a layer: phi(x) = base SiLU(x) + polynomial on each piece, straight lines beyond.

    `breaks` `(in, pieces + 1)`; `bernstein` `(out, in, pieces, k + 1)`; `base` `(out, in)`;
    `end_values`, `end_slopes` `(out, in, 2)`: the lines below the first break and above the last.
    """

    breaks: Tensor
    bernstein: Tensor
    base: Tensor
    end_values: Tensor
    end_slopes: Tensor

    def derivative(self, times: int) -> Tensor:
        """Bernstein coefficients of the polynomials' derivative, `(out, in, pieces, max(k - times, 0) + 1)`."""
        coefficients = self.bernstein
        width = self.breaks.diff(dim=1)[..., None]
        for _ in range(times):
            degree = coefficients.shape[-1] - 1
            if degree == 0:
                return torch.zeros_like(coefficients)
            coefficients = degree * coefficients.diff(dim=-1) / width
        return coefficients


@torch.no_grad()
def edge_pieces(layer: KANLayer) -> EdgePieces:
    """The edges of a layer in float64; exact up to rounding, for k + 1 values fix a polynomial of degree k."""
    layer = deepcopy(layer).double()
    knots, order = layer.knots(), layer.spline_order
    linear = layer.extension == "linear"
    breaks = knots[:, order : knots.shape[1] - order] if linear else knots
    # Chebyshev's points lie inside the piece, so that no value is asked for at a knot.
    nodes = (1 - torch.cos(torch.pi * (torch.arange(order + 1, dtype=knots.dtype) + 0.5) / (order + 1))) / 2
    points = breaks[:, :-1, None] + breaks.diff(dim=1)[..., None] * nodes
    weights = layer.spline_weight[..., None] * layer.coefficients
    spline = torch.einsum("oir,irn->oin", weights, layer.basis(points.flatten(1)))
    values = spline.unflatten(2, points.shape[1:])
    bernstein = torch.linalg.solve(bernstein_basis(nodes, order), values[..., None])[..., 0]
    width = breaks.diff(dim=1)
    end_slopes = torch.stack(
        [
            order * (bernstein[:, :, 0, 1] - bernstein[:, :, 0, 0]) / width[:, 0],
            order * (bernstein[:, :, -1, -1] - bernstein[:, :, -1, -2]) / width[:, -1],
        ],
        dim=-1,
    )
    end_values = torch.stack([bernstein[:, :, 0, 0], bernstein[:, :, -1, -1]], dim=-1)
    if not linear:
        end_slopes, end_values = torch.zeros_like(end_slopes), torch.zeros_like(end_values)
    return EdgePieces(breaks, bernstein, layer.base_weight.detach(), end_values, end_slopes)


def bernstein_basis(s: Tensor, degree: int) -> Tensor:
    """C(k, m) s^m (1 - s)^{k-m} for m = 0 .. k, `(..., k + 1)`."""
    return torch.stack(
        [math.comb(degree, m) * s**m * (1 - s) ** (degree - m) for m in range(degree + 1)],
        dim=-1,
    )
