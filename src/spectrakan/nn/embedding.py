"""What a network reads: the history as channels, the parameters as constant fields, and the positions of cells.

Shapes: history `(batch, history, *space, field)`, fields `(channel, batch, *space)`; positions have one row a cell,
in the order in which space is flattened.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.axis import Axis, as_like, kept, uniform_axis
from spectrakan.numerics.quadrature import cell_volumes
from spectrakan.numerics.resample import along_axis, transfer_matrix


def channels_first(history: Float[Tensor, "batch history *space field"]) -> Float[Tensor, "channels batch *space"]:
    """`(batch, history, *space, field)` -> `(history * field, batch, *space)`, frames in order of time."""
    return history.movedim((1, -1), (0, 1)).flatten(0, 1).contiguous()


def channels_last(field: Float[Tensor, "field batch *space"]) -> Float[Tensor, "batch *space field"]:
    """`(field, batch, *space)` -> `(batch, *space, field)`."""
    return field.movedim(0, -1)


def with_params(field: Tensor, params: Tensor | None) -> Tensor:
    """Append each parameter as a channel that is constant in space."""
    if params is None:
        return field
    constant = params.T.view(*params.T.shape, *[1] * (field.ndim - 2)).expand(-1, -1, *field.shape[2:])
    return torch.cat([field, constant])


def with_params_last(values: Tensor, params: Tensor | None) -> Tensor:
    """The same behind the fields of `(batch, ..., field)`."""
    if params is None:
        return values
    constant = params.view(params.shape[0], *[1] * (values.ndim - 2), -1)
    return torch.cat([values, constant.expand(*values.shape[:-1], -1)], dim=-1)


def with_coordinates(field: Tensor, axes: Sequence[Axis], along: Sequence[int] | None = None) -> Tensor:
    """Append the cell centres in [0, 1], one channel an axis; of all axes, or `along` some of them."""
    space = field.shape[2:]
    channels = [field]
    for dim in range(len(axes)) if along is None else along:
        view = [1] * (field.ndim - 2)
        view[dim] = space[dim]
        centres = axes[dim].centres.to(field.dtype).to(field.device).view(1, 1, *view)
        channels.append(centres.expand(1, field.shape[1], *space))
    return torch.cat(channels)


def cell_coordinates(axes: Sequence[Axis], like: Tensor) -> Float[Tensor, "cells axes"]:
    """Cell centres in [0, 1], `(cells, axes)`."""
    mesh = torch.meshgrid(*[axis.centres for axis in axes], indexing="ij")
    return torch.stack(mesh, dim=-1).flatten(0, -2).to(like.dtype).to(like.device)


def cell_shares(axes: Sequence[Axis], like: Tensor) -> Float[Tensor, " cells"]:
    """Each cell's share of the domain's volume, `(cells,)`, summing to one."""
    return as_like(cell_volumes([axis.weights for axis in axes]).flatten(), like)


def read_sensors(
    history: Float[Tensor, "batch history *space field"], axes: Sequence[Axis], counts: Sequence[int]
) -> Float[Tensor, "batch history *sensors field"]:
    """The values of `counts[a]` equal sensor cells along each axis, the same operator at all resolutions.

    On a finer grid a sensor gives the mean of the field over its cell, on a coarser one the value at its centre on
    straight lines between the grid's centres, and on a grid of the same cells the grid's own value.
    """
    for dim, (axis, count) in enumerate(zip(axes, counts, strict=True), start=2):
        if not (axis.uniform and axis.cells == count):
            history = along_axis(_sensor_matrix(axis, count, history), history, dim)
    return history


@kept
def _sensor_matrix(axis: Axis, count: int, like: Tensor) -> Tensor:
    lattice = uniform_axis(count, axis.periodic)
    return as_like(transfer_matrix(axis.edges, lattice.edges, periodic=axis.periodic), like)
