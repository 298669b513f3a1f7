"""What a field on some cells says at other places along an axis: lines between centres, means over cells."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.numerics.resample import overlap_matrix


def line_matrix(centres: Float[Tensor, " n"], places: Float[Tensor, " m"], *, periodic: bool) -> Float[Tensor, "m n"]:
    """Values at `places` in [0, 1] on straight lines between increasing `centres`, `(m, n)`; rows sum to one.

    Beyond the outermost centres the value stays constant, or runs on to the other end where the axis is periodic.
    """
    n = centres.shape[0]
    if n == 1:
        return torch.ones(places.shape[0], 1, dtype=centres.dtype, device=centres.device)
    if periodic:
        nodes = torch.cat([centres[-1:] - 1, centres, centres[:1] + 1])
        column = torch.arange(-1, n + 1, device=centres.device).remainder(n)
    else:
        nodes = centres
        column = torch.arange(n, device=centres.device)
        places = places.clamp(centres[0], centres[-1])
    upper = torch.searchsorted(nodes.contiguous(), places.contiguous(), right=True).clamp(1, nodes.shape[0] - 1)
    share = (places - nodes[upper - 1]) / (nodes[upper] - nodes[upper - 1])
    matrix = torch.zeros(places.shape[0], n, dtype=centres.dtype, device=centres.device)
    rows = torch.arange(places.shape[0], device=centres.device)
    matrix.index_put_((rows, column[upper - 1]), 1 - share, accumulate=True)
    return matrix.index_put_((rows, column[upper]), share, accumulate=True)


def transfer_matrix(
    edges: Float[Tensor, " faces"], other_edges: Float[Tensor, " other_faces"], *, periodic: bool
) -> Float[Tensor, "m n"]:
    """From n cells to m others of the same axis [0, 1], `(m, n)`; the identity where both are the same.

    Onto fewer cells: means over each of them. Onto more: lines between the centres. Both keep constants.
    """
    if other_edges.shape[0] <= edges.shape[0]:
        return overlap_matrix(edges, other_edges)
    centres, places = (edges[1:] + edges[:-1]) / 2, (other_edges[1:] + other_edges[:-1]) / 2
    return line_matrix(centres, places, periodic=periodic)


def along_axis(matrix: Float[Tensor, "m n"], values: Tensor, axis: int) -> Tensor:
    """Multiply one axis of an array by a matrix: `(..., n, ...)` -> `(..., m, ...)`."""
    lead, trail = values.shape[:axis], values.shape[axis + 1 :]
    if not trail:  # one product, not one for each line
        lines: Tensor = values.reshape(-1, values.shape[axis]) @ matrix.T
        return lines.view(*lead, matrix.shape[0])
    flat = values.reshape(math.prod(lead), values.shape[axis], -1)
    product: Tensor = torch.bmm(matrix.expand(flat.shape[0], *matrix.shape), flat)
    return product.view(*lead, matrix.shape[0], *trail)
