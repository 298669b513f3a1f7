"""Where the cells of a grid are, as features: one row a cell, in the order in which space is flattened."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.axis import Axis, uniform_axis


def cell_coordinates(axes: Sequence[Axis], like: Tensor) -> Float[Tensor, "cells axes"]:
    """Cell centres in [0, 1], `(cells, axes)`."""
    mesh = torch.meshgrid(*[axis.centres for axis in axes], indexing="ij")
    return torch.stack(mesh, dim=-1).flatten(0, -2).to(like.dtype).to(like.device)


def lattice_distances(axes: Sequence[Axis], per_axis: int, like: Tensor) -> Float[Tensor, "cells points"]:
    """Distances of each cell centre to `per_axis` equally spaced points along each axis, `(cells, per_axis^axes)`."""
    lattice = cell_coordinates([uniform_axis(per_axis, False)] * len(axes), like)
    return torch.cdist(cell_coordinates(axes, like), lattice)


def cell_shares(axes: Sequence[Axis], like: Tensor) -> Float[Tensor, " cells"]:
    """Share of the domain's volume that each cell stands for, `(cells,)`, summing to one."""
    shares = torch.ones(1, dtype=torch.float64)
    for axis in axes:
        shares = (shares[:, None] * axis.weights).flatten()
    return shares.to(like.dtype).to(like.device)


def with_params(rows: Float[Tensor, "batch cells field"], params: Tensor | None) -> Tensor:
    """Append each parameter to every row: `(batch, cells, field)` -> `(batch, cells, field + params)`."""
    if params is None:
        return rows
    return torch.cat([rows, params[:, None].expand(-1, rows.shape[1], -1)], dim=-1)
