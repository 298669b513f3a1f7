"""What a pair of fields must look like to be compared, and how it is read piece by piece."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.fields import Array, Grid
from spectrakan.numerics.quadrature import to_float64

BLOCK_VALUES = 1 << 19
"""Numbers of one array that are processed together: small enough for a cache, large enough for speed."""

Fields = Tensor | npt.NDArray[Any] | Array
"""What is scored: a tensor, a NumPy array, or an array that is read from a file piece by piece."""


def check_fields(name: str, shape: Sequence[int], grid: Grid | None = None) -> None:
    """Refuse what is not `(batch, time, *space, channel)` with 1 to 3 space axes that fit the grid."""
    if not 4 <= len(shape) <= 6:
        raise ShapeError(
            f"{name} must have axes (batch, time, *space, channel) with 1 to 3 space axes, got shape "
            f"{tuple(shape)}; add a time axis of length 1 to steady fields"
        )
    if min(shape[1:]) < 1:
        raise ShapeError(f"{name} has an axis without entries: shape {tuple(shape)}")
    if grid is not None and grid.shape != tuple(shape[2:-1]):
        raise ShapeError(f"{name} has {tuple(shape[2:-1])} cells, the grid has {grid.shape}")


def check_pair(pred: Sequence[int], target: Sequence[int], grid: Grid | None = None) -> None:
    """Refuse a prediction that is no field, or whose shape is not that of the truth; nothing is broadcast."""
    check_fields("prediction", pred, grid)
    if tuple(pred) != tuple(target):
        raise ShapeError(
            f"prediction and target must have the same shape, got {tuple(pred)} and {tuple(target)}; "
            "drop the given frames from the target, or evaluate on a target solved at the same resolution"
        )


def cell_volumes(grid: Grid | None, space: Sequence[int]) -> Tensor:
    """Share of the domain of each cell `(*space)`; equal shares without a grid."""
    if grid is None:
        cells = int(np.prod(space))
        return torch.full(tuple(space), 1.0 / cells, dtype=torch.float64)
    return grid.volumes()


def as_float64(values: Fields) -> Tensor:
    """Any real array as a float64 tensor, on its own device where that device knows float64."""
    tensor = values.detach() if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    if tensor.is_complex():
        raise ShapeError("fields must be real numbers; split complex ones into two channels")
    return to_float64(tensor)


def paired_blocks(pred: Fields, target: Fields) -> Iterator[tuple[Tensor, Tensor]]:
    """Consecutive samples of both arrays in float64, a bounded number of values at a time."""
    step = max(1, BLOCK_VALUES // max(1, int(np.prod(pred.shape[1:]))))
    for start in range(0, pred.shape[0], step):
        first = as_float64(pred[start : start + step])
        yield first, as_float64(target[start : start + step]).to(first.device)
