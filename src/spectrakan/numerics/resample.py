"""Fields on other cells or points along an axis: means over larger cells, straight lines between cell centres."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def overlap_matrix(
    fine_edges: Float[Tensor, " faces"], coarse_edges: Float[Tensor, " coarse_faces"]
) -> Float[Tensor, "coarse fine"]:
    """Means over coarse cells of a field constant on fine ones, `(coarse, fine)`; rows sum to one.

    Entry (i, j) is the length of fine cell j inside coarse cell i over the length of i.
    """
    low = torch.maximum(coarse_edges[:-1, None], fine_edges[:-1])
    high = torch.minimum(coarse_edges[1:, None], fine_edges[1:])
    return (high - low).clamp_min(0) / coarse_edges.diff()[:, None]


def line_matrix(centres: Float[Tensor, " n"], points: Float[Tensor, " m"], *, periodic: bool) -> Float[Tensor, "m n"]:
    """Values at `points` in [0, 1] on straight lines between increasing `centres`, `(m, n)`; rows sum to one.

    Beyond the outermost centres the value is constant, or continues at the other end where the axis is periodic.
    """
    # One more node at either end: the neighbours on a periodic axis; without weight where the ends are held.
    nodes = torch.cat([centres[-1:] - 1, centres, centres[:1] + 1])
    if not periodic:
        points = torch.minimum(torch.maximum(points, centres[0]), centres[-1])
    share = (points[:, None] - nodes[:-1]) / nodes.diff()
    inner = torch.minimum(share[:, :-1], 1 - share[:, 1:]).clamp_min(0)
    before, after = (1 - share[:, :1]).clamp_min(0), share[:, -1:].clamp_min(0)
    last = torch.arange(centres.shape[0], device=centres.device) == centres.shape[0] - 1
    return inner + before * last + after * last.flip(0)


def transfer_matrix(
    edges: Float[Tensor, " faces"], other_edges: Float[Tensor, " other_faces"], *, periodic: bool
) -> Float[Tensor, "m n"]:
    """From n cells to m other cells of the same axis [0, 1], `(m, n)`; the identity where both are equal.

    Onto fewer cells: means over each of them. Onto more: lines between the centres. Both keep constants.
    """
    if torch.compiler.is_exporting():  # sizes are symbols: the program chooses when it runs
        coarser = torch.full((1, 1), other_edges.shape[0]) <= edges.shape[0]
        lines = line_matrix(_centres(edges), _centres(other_edges), periodic=periodic)
        return torch.where(coarser, overlap_matrix(edges, other_edges), lines)
    if other_edges.shape[0] <= edges.shape[0]:
        return overlap_matrix(edges, other_edges)
    return line_matrix(_centres(edges), _centres(other_edges), periodic=periodic)


def _centres(edges: Tensor) -> Tensor:
    return (edges[1:] + edges[:-1]) / 2


def block_mean(values: Tensor, axis: int, stride: int) -> Tensor:
    """Means over `stride` neighbours along an axis whose size it divides: `overlap_matrix` on equal cells.

    >>> block_mean(torch.tensor([1.0, 3.0, 5.0, 7.0]), 0, 2).tolist()
    [2.0, 6.0]
    """
    blocks: Tensor = values.unflatten(axis, (-1, stride))
    return blocks.mean(axis + 1 if axis >= 0 else axis)


def along_axis(matrix: Float[Tensor, "m n"], values: Tensor, axis: int) -> Tensor:
    """Multiply one axis of an array by a matrix: `(..., n, ...)` -> `(..., m, ...)`."""
    lead, trail = values.shape[:axis], values.shape[axis + 1 :]
    if not trail:  # one product, not one for each line
        lines: Tensor = values.reshape(-1, values.shape[axis]) @ matrix.T
        return lines.view(*lead, matrix.shape[0])
    flat = values.reshape(math.prod(lead), values.shape[axis], -1)
    product: Tensor = torch.bmm(matrix.expand(flat.shape[0], *matrix.shape), flat)
    return product.view(*lead, matrix.shape[0], *trail)
