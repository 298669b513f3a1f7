"""Networks of a branch and a trunk: fixed sensors read the input, coordinates give a basis, and both are multiplied.

    u_c(x) = sum_k b_ck(u(s_1), .., u(s_m), params) t_k(x)

The unit box is cut into `counts[a]` equal sensor cells along axis a. On a finer grid a sensor gives the mean of the
field over its cell, on a coarser one the value at its centre on straight lines between the grid's centres, and on a
grid of the same cells the grid's own value. So the branch is one operator at all resolutions.
Shapes: history `(batch, history, *space, field)`; branch `(batch, fields * features)`, trunk `(cells, features)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.axis import Axis, kept, uniform_axis
from spectrakan.nn.embedding import cell_coordinates
from spectrakan.numerics.resample import along_axis, transfer_matrix


def branch_trunk(
    branch: Float[Tensor, "batch coefficients"], trunk: Float[Tensor, "cells features"]
) -> Float[Tensor, "batch cells fields"]:
    """The sum over features for each sample, cell and field."""
    coefficients: Tensor = branch.unflatten(1, (-1, trunk.shape[1]))
    return (coefficients @ trunk.T).transpose(1, 2)


def sensed(
    history: Tensor, params: Tensor | None, axes: Sequence[Axis], counts: Sequence[int]
) -> Float[Tensor, "batch inputs"]:
    """The input of a branch: the history at the sensors, flattened, and the parameters behind it."""
    values = read_sensors(history, axes, counts).flatten(1)
    return values if params is None else torch.cat([values, params], dim=1)


def read_sensors(
    history: Float[Tensor, "batch history *space field"], axes: Sequence[Axis], counts: Sequence[int]
) -> Float[Tensor, "batch history *sensors field"]:
    """The values of `counts` sensors along each axis."""
    for dim, (axis, count) in enumerate(zip(axes, counts, strict=True), start=2):
        if not (axis.uniform and axis.cells == count):
            history = along_axis(_sensor_matrix(axis, count, history), history, dim)
    return history


@kept
def _sensor_matrix(axis: Axis, count: int, like: Tensor) -> Tensor:
    lattice = uniform_axis(count, axis.periodic)
    return transfer_matrix(axis.edges, lattice.edges, periodic=axis.periodic).to(like.dtype).to(like.device)


def trunk_coordinates(axes: Sequence[Axis], periodic: Sequence[bool], like: Tensor) -> Tensor:
    """2x - 1, or cosine and sine of 2 pi x where the axis is periodic: all in [-1, 1], `(cells, coordinates)`."""
    columns: list[Tensor] = []
    for x, wraps in zip(cell_coordinates(axes, like).unbind(1), periodic, strict=True):
        angle = 2 * math.pi * x
        columns += [angle.cos(), angle.sin()] if wraps else [2 * x - 1]
    return torch.stack(columns, dim=1)
