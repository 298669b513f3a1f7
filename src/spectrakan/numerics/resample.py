"""From one set of cells to another along an axis: means over larger cells, lines between cell centres."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def coarse_size(cells: int, stride: int) -> int:
    """Number of equal cells that stand for `cells` ones at `stride` times their width: ceil(n / s)."""
    return (cells + stride - 1) // stride


def overlap_matrix(
    fine_edges: Float[Tensor, " faces"], coarse_edges: Float[Tensor, " coarse_faces"]
) -> Float[Tensor, "coarse fine"]:
    """Means over coarse cells of a field constant on fine ones, `(coarse, fine)`; rows sum to one.

    Entry (i, j) is the length of fine cell j inside coarse cell i over the length of i.
    """
    low = torch.maximum(coarse_edges[:-1, None], fine_edges[:-1])
    high = torch.minimum(coarse_edges[1:, None], fine_edges[1:])
    return (high - low).clamp_min(0) / coarse_edges.diff()[:, None]


def interpolation_matrix(centres: Float[Tensor, " n"], coarse: int, *, periodic: bool) -> Float[Tensor, "n coarse"]:
    """Values at `centres` in [0, 1] on lines between the centres of `coarse` equal cells, `(n, coarse)`.

    Beyond the outermost centres the value stays constant, or wraps around where the axis is periodic.
    """
    place = centres * coarse - 0.5
    if not periodic:
        place = place.clamp(0, coarse - 1)
    lower = place.floor()
    share = (place - lower)[:, None]
    column = torch.arange(coarse, device=centres.device)
    first = lower.long()[:, None]
    if periodic:
        below, above = first.remainder(coarse), (first + 1).remainder(coarse)
    else:
        below, above = first, (first + 1).clamp_max(coarse - 1)
    return (1 - share) * (column == below) + share * (column == above)


def block_mean(values: Tensor, axis: int, stride: int) -> Tensor:
    """Means over `stride` neighbours along an axis whose size it divides: `overlap_matrix` on equal cells."""
    blocks: Tensor = values.unflatten(axis, (-1, stride))
    return blocks.mean(axis + 1 if axis >= 0 else axis)


def upsample_lines(values: Tensor, axis: int, stride: int, *, periodic: bool) -> Tensor:
    """`interpolation_matrix` for equal cells and a whole factor: `stride` phases, each a fixed mix of neighbours."""
    axis = axis % values.ndim
    size = values.shape[axis]
    first, last = values.narrow(axis, 0, 1), values.narrow(axis, size - 1, 1)
    ends = (last, first) if periodic else (first, last)
    padded = torch.cat([ends[0], values, ends[1]], dim=axis)
    phases = []
    for phase in range(stride):
        offset = (phase + 0.5) / stride - 0.5  # of the fine centre from the coarse one, in coarse widths
        start = 0 if offset < 0 else 1
        share = offset + 1 if offset < 0 else offset
        below, above = padded.narrow(axis, start, size), padded.narrow(axis, start + 1, size)
        phases.append(torch.lerp(below, above, share))
    return torch.stack(phases, dim=axis + 1).flatten(axis, axis + 1)


SPLIT = (201 / 1024, -44 / 1024, 5 / 1024)
"""How far the right half of a cell lies above its mean, per difference of the means one, two and three cells away."""


def split_cells(values: Tensor, axis: int, *, periodic: bool) -> Tensor:
    """Equal cells cut in two: the halves' means of the polynomial that has the means of the seven cells around.

    The two halves of a cell have its mean between them, so `block_mean` takes the result back; polynomials of
    degree six are met exactly. Past an end that is not periodic the last mean goes on.
    """
    axis = axis % values.ndim
    size = values.shape[axis]
    place = torch.arange(size, device=values.device)
    rise = torch.zeros_like(values)
    for distance, share in enumerate(SPLIT, start=1):
        after, before = place + distance, place - distance
        if periodic:
            after, before = after.remainder(size), before.remainder(size)
        else:
            after, before = after.clamp_max(size - 1), before.clamp_min(0)
        rise = rise + share * (values.index_select(axis, after) - values.index_select(axis, before))
    return torch.stack([values - rise, values + rise], dim=axis + 1).flatten(axis, axis + 1)
