"""One axis of a grid as the layers see it, and its transforms, made once and kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.fields import Grid
from spectrakan.numerics.fourier import (
    Basis,
    resolved_modes,
    signed_matrices,
    signed_orders,
    stored_modes,
    transform_matrices,
)
from spectrakan.numerics.quadrature import equal_weights
from spectrakan.numerics.resample import coarse_size, overlap_matrix


@dataclass(frozen=True, eq=False)
class Axis:
    """Cells along one axis of the unit box, in float64 on the CPU.

    `centres`, `widths` `(n,)` in the axis' own coordinate; `edges` `(n + 1,)`;
    `weights` `(n,)` share of volume (differs from the widths on a globe).
    """

    centres: Tensor
    edges: Tensor
    weights: Tensor
    periodic: bool
    uniform: bool

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.centres.shape[0]

    @property
    def widths(self) -> Tensor:
        """Lengths of the cells, summing to one."""
        return self.edges.diff()

    def coarse(self, stride: int) -> Axis:
        """The same axis cut into ceil(n / stride) equal cells."""
        equal = uniform_axis(coarse_size(self.cells, stride), self.periodic)
        if self.uniform:
            return equal
        # A coarse cell has the volume of the parts of fine cells that lie in it.
        density = self.weights / self.widths
        volume = (overlap_matrix(self.edges, equal.edges) @ density) * equal.widths
        return Axis(equal.centres, equal.edges, volume / volume.sum(), self.periodic, uniform=False)


@dataclass(frozen=True, eq=False)
class AxisTransform:
    """Analysis and synthesis along one axis in the type and on the device of the data.

    `analysis` `(rows, n)`, `synthesis` `(n, rows)`: see `numerics.fourier`; `mean` `(rows,)` is the
    volume-weighted mean of each synthesis column, `weights` `(n,)` the volume share of each cell.
    `one_mean` says that the first row alone has a mean, one: so it is for waves on equal cells.
    """

    analysis: Tensor
    synthesis: Tensor
    mean: Tensor
    weights: Tensor
    modes: int
    one_mean: bool


def axes_of(space: Sequence[int], grid: Grid | None, periodic: Sequence[bool]) -> tuple[Axis, ...]:
    """The axes of `grid`, or of equal cells on the unit box where it is None.

    `periodic` is what the model knows of the boundary; a grid that names its boundary overrules it.
    """
    if grid is None:
        return tuple(uniform_axis(cells, wraps) for cells, wraps in zip(space, periodic, strict=True))
    if grid.shape != tuple(space):
        raise ShapeError(f"the grid has {grid.shape} cells, the field {tuple(space)}")
    wraps = tuple(kind == "periodic" for kind in grid.boundary) or tuple(periodic)
    return _axes_of_grid(grid, wraps)


def uniform_axis(cells: int, periodic: bool) -> Axis:
    """Equal cells on [0, 1]."""
    return _uniform_axis(cells, periodic) if _may_keep() else _uniform_axis.__wrapped__(cells, periodic)


def padded_axis(axis: Axis, cells: int) -> Axis:
    """The axis with `cells` more cells past its far end, as wide as its last one, scaled back to [0, 1]."""
    if axis.uniform:
        return uniform_axis(axis.cells + cells, axis.periodic)
    return _padded_axis(axis, cells) if _may_keep() else _padded_axis.__wrapped__(axis, cells)


def axis_transform(axis: Axis, basis: Basis, num_modes: int, like: Tensor) -> AxisTransform:
    """The transform of one axis for a layer of `num_modes`, kept for the next call with the same axis."""
    make = _axis_transform if _may_keep() else _axis_transform.__wrapped__
    return make(axis, basis, num_modes, like.dtype, like.device)


def signed_transform(axis: Axis, basis: Basis, num_modes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """`signed_matrices` of one axis, kept likewise."""
    make = _signed_transform if _may_keep() else _signed_transform.__wrapped__
    return make(axis, basis, num_modes, like.dtype, like.device)


def two_sided_transform(axis: Axis, num_modes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """`signed_matrices` of the Fourier modes 0 .. m - 1 and -m .. -1, as many of each as the cells resolve."""
    make = _two_sided_transform if _may_keep() else _two_sided_transform.__wrapped__
    return make(axis, num_modes, like.dtype, like.device)


def wave_transform(axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    """All Fourier modes below what the cells resolve: frequencies `(L,)` in radians, analysis `(L, n)` complex."""
    make = _wave_transform if _may_keep() else _wave_transform.__wrapped__
    return make(axis, like.dtype, like.device)


def _may_keep() -> bool:
    """While a program is traced, sizes are symbols and must not be remembered."""
    return not torch.compiler.is_compiling()


@lru_cache(maxsize=256)
def _uniform_axis(cells: int, periodic: bool) -> Axis:
    with torch.inference_mode(False):
        edges = torch.arange(cells + 1, dtype=torch.float64) / cells
        centres = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
        return Axis(centres, edges, equal_weights(cells, centres), periodic, uniform=True)


@lru_cache(maxsize=64)
def _padded_axis(axis: Axis, cells: int) -> Axis:
    with torch.inference_mode(False):
        steps = torch.arange(1, cells + 1, dtype=torch.float64) * axis.widths[-1]
        edges = torch.cat([axis.edges, axis.edges[-1] + steps])
        centres = torch.cat([axis.centres, axis.edges[-1] + steps - axis.widths[-1] / 2])
        weights = torch.cat([axis.weights, axis.weights[-1:].expand(cells)])
        return Axis(centres / edges[-1], edges / edges[-1], weights / weights.sum(), axis.periodic, uniform=False)


@lru_cache(maxsize=64)
def _axes_of_grid(grid: Grid, periodic: tuple[bool, ...]) -> tuple[Axis, ...]:
    uniform = grid.is_uniform()
    return tuple(
        uniform_axis(len(centres), wraps) if uniform else Axis(centres, edges, weights, wraps, uniform=False)
        for centres, edges, weights, wraps in zip(
            grid.unit_coordinates(), grid.unit_edges(), grid.weights, periodic, strict=True
        )
    )


@lru_cache(maxsize=256)
def _axis_transform(
    axis: Axis, basis: Basis, num_modes: int, dtype: torch.dtype, device: torch.device
) -> AxisTransform:
    # Angles are computed in float64 and rounded once; a tensor made in inference mode could not train later.
    with torch.inference_mode(False):
        count = resolved_modes(basis, num_modes, axis.cells)
        analysis, synthesis = transform_matrices(basis, count, axis.centres, axis.widths)
        mean = axis.weights @ synthesis
        parts = (analysis, synthesis, mean, axis.weights)
        kept = [part.to(dtype).to(device).contiguous() for part in parts]
    one_mean = axis.uniform and basis in ("fourier", "cosine")
    return AxisTransform(kept[0], kept[1], kept[2], kept[3], count, one_mean)


@lru_cache(maxsize=256)
def _signed_transform(
    axis: Axis, basis: Basis, num_modes: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):
        count = resolved_modes(basis, num_modes, axis.cells)
        if _may_keep():
            into, out = signed_matrices(basis, count, axis.centres, axis.widths)
        else:
            # A traced program cannot reason about 2 count - 1 where cells are a symbol: it keeps the rows of all
            # stored modes, those that the cells do not resolve being zero.
            into, out = signed_matrices(basis, stored_modes(basis, num_modes), axis.centres, axis.widths)
            into = into * (signed_orders(stored_modes(basis, num_modes)).abs() < count).repeat(2)[:, None]
        return into.to(dtype).to(device).contiguous(), out.to(dtype).to(device).contiguous()


@lru_cache(maxsize=256)
def _two_sided_transform(
    axis: Axis, num_modes: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):
        count = resolved_modes("fourier", num_modes, axis.cells)
        negative = min(num_modes, (axis.cells + 1) // 2 - 1)
        into, out = signed_matrices("fourier", count, axis.centres, axis.widths, negative)
        return into.to(dtype).to(device).contiguous(), out.to(dtype).to(device).contiguous()


@lru_cache(maxsize=256)
def _wave_transform(axis: Axis, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):
        highest = (axis.cells + 1) // 2 - 1
        order = 2 * math.pi * torch.arange(-highest, highest + 1, dtype=torch.float64)
        analysis = torch.polar(axis.widths.expand(len(order), -1), -order[:, None] * axis.centres)
        return order.to(dtype).to(device), analysis.to(dtype.to_complex()).to(device)
