"""Kernels that act near a point: difference stencils, and local functions to integrate against.

Difference stencil. Of weights w_j on the offsets j in {-r .. r}^d, the values u(x + j h) - u(x) are sums of steps
along one axis after the other, and each step is divided by its own cell width h_a:
    sum_j w_j sum_a [ u(x + (j_1..j_a, 0..) h) - u(x + (j_1..j_{a-1}, 0..) h) ] / h_a
        ->  sum_a (sum_j j_a w_j) du/dx_a,
so any weights give a first derivative as h -> 0, also where the axes are refined unequally.

Local functions. On the ball |z| < R, with nodes r_p = p R / P, hats in the radius times squared cosines to the axes:
    e_0 = hat_0(|z|),     e_{p, a, +-} = hat_p(|z|) max(0, +-z_a / |z|)²,    p = 1 .. P - 1.
The squared cosines sum to one, so all functions together are one up to r_{P-1}, then fall to zero at R.
Each is scaled to integral one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def difference_stencils(
    weights: Float[Tensor, "out channel *offsets"],
) -> list[Float[Tensor, "out channel *offsets"]]:
    """One stencil an axis, to be divided by that axis' cell width and summed; each sums to zero."""
    stencils = []
    rest = weights
    for axis in reversed(range(weights.ndim - 2)):
        collapsed = _onto_centre(rest, axis + 2)
        stencils.append(rest - collapsed)
        rest = collapsed
    return stencils[::-1]


def count_local_functions(rings: int, space_dims: int) -> int:
    """How many functions `local_functions` gives: 1 + 2 d (P - 1)."""
    return 1 + 2 * space_dims * (rings - 1)


def local_functions(offsets: Sequence[Tensor], radius: float, rings: int) -> Tensor:
    """The functions at all combinations of `offsets` `(n_a,)`, before scaling: `(functions, *offsets)`."""
    mesh = torch.stack(torch.meshgrid(*offsets, indexing="ij"))
    distance = torch.linalg.vector_norm(mesh, dim=0)
    step = radius / rings
    functions = [(1 - distance / step).clamp_min(0)]
    cosines = mesh / distance.clamp_min(torch.finfo(distance.dtype).tiny)
    for ring in range(1, rings):
        hat = (1 - (distance - ring * step).abs() / step).clamp_min(0)
        functions += [hat * (sign * cosine).clamp_min(0).square() for cosine in cosines for sign in (1, -1)]
    return torch.stack(functions)


def stencil_shape(widths: Sequence[float], radius: float) -> list[int]:
    """How many cells of the given widths lie within the radius of a cell, itself included, along each axis."""
    return [2 * (math.ceil(radius / width) - 1) + 1 if width < radius else 1 for width in widths]


def sampled_functions(widths: Sequence[float], radius: float, rings: int) -> Tensor:
    """The functions on offsets of whole cells, scaled to sum to one: `(functions, *offsets)`, float64.

    A function that contains no offset, because the cells are too wide for it, is left zero.
    """
    offsets = [
        torch.arange(-(count // 2), count // 2 + 1, dtype=torch.float64) * width
        for count, width in zip(stencil_shape(widths, radius), widths, strict=True)
    ]
    values = local_functions(offsets, radius, rings)
    totals = values.flatten(1).sum(1)
    scale = torch.where(totals > 0, 1 / totals.clamp_min(torch.finfo(totals.dtype).tiny), 0.0)
    return values * scale.view(-1, *[1] * len(widths))


def _onto_centre(stencil: Tensor, axis: int) -> Tensor:
    """The sum along one axis, placed at its middle."""
    middle = torch.zeros(stencil.shape[axis], dtype=stencil.dtype, device=stencil.device)
    middle[stencil.shape[axis] // 2] = 1
    return stencil.sum(axis, keepdim=True) * middle.view(-1, *[1] * (stencil.ndim - axis - 1))
