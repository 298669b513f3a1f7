"""What users give as they have it: numbers of other programs, dates, and cell centres, as plain arrays and grids."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.errors import ShapeError
from spectrakan.fields.grid import Boundary, Grid, grid_around


def plain_numbers(what: str, given: npt.ArrayLike) -> npt.NDArray[Any]:
    """Real numbers in this machine's byte order; masked ones become NaN."""
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu()
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(np.result_type(given.dtype, np.float32)), np.nan)
    array = np.asarray(given)
    if array.dtype.kind not in "fiu":
        raise ShapeError(f"{what} must be real numbers, got {array.dtype}")
    return array.astype(np.float64 if array.dtype.itemsize > 8 else array.dtype.newbyteorder("="), copy=False)


def instants(clock: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Times as numbers: dates of any calendar as days since the first, durations as days."""
    if clock.dtype.kind == "O" and clock.size and hasattr(clock.flat[0], "year"):
        clock = (clock - clock.flat[0]).astype("timedelta64[us]")
    clock = clock - clock.flat[0] if clock.dtype.kind == "M" and clock.size else clock
    return (clock / np.timedelta64(1, "D") if clock.dtype.kind == "m" else clock).astype(np.float64)


def stated_grid(grid: Any, space: tuple[int, ...], boundary: Sequence[Boundary]) -> Grid:
    """A grid from a `Grid`, one array of cell centres for each axis (in 1D also alone), or None for equal cells.

    One word in `boundary` counts for all axes.
    """
    ends: Any = (boundary,) if isinstance(boundary, str) else tuple(boundary)
    ends = ends * len(space) if len(ends) == 1 else ends
    if grid is None:
        return Grid.uniform(space, boundary=ends)
    if isinstance(grid, Grid):
        return replace(grid, boundary=ends) if ends else grid
    centres = [np.asarray(axis, dtype=np.float64) for axis in ([grid] if np.ndim(grid[0]) == 0 else grid)]
    if any(axis.ndim != 1 for axis in centres):
        found = ", ".join(str(axis.shape) for axis in centres)
        raise ShapeError(f"grid must be one array of cell centres for each axis, got arrays of shape {found}")
    return grid_around(centres, ends)
