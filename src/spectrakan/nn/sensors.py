"""A lattice of fixed places at which a field of any resolution is read.

The unit box is cut into `counts[a]` equal sensor cells along axis a. On a finer grid a sensor says the mean of
the field over its cell, on a coarser one the value at its centre on straight lines between the grid's centres;
on a grid as fine as the lattice it says the grid's own value. So a network behind sensors is one operator at
all resolutions. Shapes: `(batch, history, *space, field)` -> `(batch, history, *counts, field)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.axis import Axis, uniform_axis
from spectrakan.numerics.sampling import along_axis, transfer_matrix


def read_sensors(
    history: Float[Tensor, "batch history *space field"], axes: Sequence[Axis], counts: Sequence[int]
) -> Float[Tensor, "batch history *sensors field"]:
    """What `counts` sensors along each axis see of a history of fields."""
    for place, (axis, count) in enumerate(zip(axes, counts, strict=True), start=2):
        if axis.uniform and axis.cells == count:
            continue
        history = along_axis(_matrix(axis, count, history), history, place)
    return history


def _matrix(axis: Axis, count: int, like: Tensor) -> Tensor:
    # While a program is traced nothing may be remembered.
    make = _kept_matrix.__wrapped__ if torch.compiler.is_compiling() else _kept_matrix
    return make(axis, count, like.dtype, like.device)


@lru_cache(maxsize=64)
def _kept_matrix(axis: Axis, count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        lattice = uniform_axis(count, axis.periodic)
        return transfer_matrix(axis.edges, lattice.edges, periodic=axis.periodic).to(dtype).to(device)
