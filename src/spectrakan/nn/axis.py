"""One axis of a grid as the layers use it, and what they compute from it, kept from call to call."""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.fields import Grid, GridPart, SpaceGroup
from spectrakan.nn.execution import transformed
from spectrakan.numerics.fourier import (
    Basis,
    resolved_modes,
    signed_matrices,
    signed_orders,
    stored_modes,
    transform_matrices,
)
from spectrakan.numerics.quadrature import weighted_mean
from spectrakan.numerics.resample import overlap_matrix

P = ParamSpec("P")
T = TypeVar("T")
CACHE_BYTES = 2**28
"""Most bytes of tensors that are kept for later calls, for all resolutions together."""
MANY = 2**40
"""More modes than any axis has cells."""

_cache: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
_cache_lock = Lock()


def kept(function: Callable[P, T]) -> Callable[P, T]:
    """Keep results for later calls with the same arguments, the least recently used ones up to `CACHE_BYTES`.

    A tensor among the arguments counts by its type and device only. While a program is traced sizes are symbols, so
    nothing is kept then. Results are made outside inference mode, because a tensor made in it cannot train later.
    """

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        if torch.compiler.is_compiling():
            return function(*args, **named)
        key = (function, *((each.dtype, each.device) if isinstance(each, Tensor) else each for each in args))
        with _cache_lock:
            if key in _cache:
                _cache.move_to_end(key)
                found: T = _cache[key][0]
                return found
        with torch.inference_mode(False):
            made = function(*args, **named)
        if transformed():  # tensors made under a function transform end with it
            return made
        with _cache_lock:
            _cache[key] = made, _bytes_of(made)
            total = sum(size for _, size in _cache.values())
            while total > CACHE_BYTES:
                total -= _cache.popitem(last=False)[1][1]
        return made

    return call


def _bytes_of(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if is_dataclass(value):
        return sum(_bytes_of(getattr(value, field.name)) for field in fields(value))
    return sum(map(_bytes_of, value)) if isinstance(value, tuple) else 0


@dataclass(frozen=True, eq=False)
class Axis:
    """Cells along one axis of the unit box, in float64 on the CPU.

    `centres`, `widths` `(n,)` in the axis' own coordinate; `edges` `(n + 1,)`;
    `weights` `(n,)` share of volume (differs from the widths on a globe). Of an axis that is cut among processes
    these are the cells of this one; part p of the `whole` has the cells from `ends[p]` to before `ends[p + 1]`.
    """

    centres: Tensor
    edges: Tensor
    weights: Tensor
    periodic: bool
    uniform: bool
    whole: Axis | None = None
    ends: tuple[int, ...] = ()
    space: SpaceGroup | None = None

    @property
    def start(self) -> int:
        """Number of the first cell among those of the whole axis."""
        return 0 if self.space is None else self.ends[self.space.rank]

    @property
    def cells(self) -> int:
        """Number of cells, of this process where the axis is cut."""
        return self.centres.shape[0]

    @property
    def total(self) -> int:
        """Number of cells of the whole axis."""
        return self.cells if self.whole is None else self.whole.cells

    def summed(self, sums: Tensor) -> Tensor:
        """Sums over the cells of this axis: of all parts where it is cut, else as they are."""
        return sums if self.space is None else self.space.sum(sums)

    @property
    def widths(self) -> Tensor:
        """Lengths of the cells, summing to one."""
        return self.edges.diff()

    @kept
    def coarse(self, stride: int) -> Axis:
        """The same axis divided into ceil(n / stride) equal cells; parts meet at the face nearest to their own."""
        if self.whole is not None and self.space is not None:
            larger = self.whole.coarse(stride)
            return _cut_axis(larger, tuple(round(end * larger.cells / self.total) for end in self.ends), self.space)
        equal = uniform_axis((self.cells + stride - 1) // stride, self.periodic)
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
    `one_mean` states that only the first row has a mean, which is one: true of waves on equal cells.
    """

    analysis: Tensor
    synthesis: Tensor
    mean: Tensor
    weights: Tensor
    modes: int
    one_mean: bool


def axes_of(space: Sequence[int], grid: Grid | None, periodic: Sequence[bool]) -> tuple[Axis, ...]:
    """The axes of `grid`, or of equal cells on the unit box where it is None.

    `periodic` is the model's knowledge of the boundary; a grid that names its boundary overrules it.
    """
    if grid is None:
        return tuple(uniform_axis(cells, wraps) for cells, wraps in zip(space, periodic, strict=True))
    if grid.shape != tuple(space):
        raise ShapeError(f"the grid has {grid.shape} cells, the field {tuple(space)}")
    if isinstance(grid, GridPart):
        first, *others = axes_of(grid.whole.shape, grid.whole, periodic)
        return _cut_axis(first, grid.space.ends(first.cells), grid.space), *others
    wraps = tuple(kind == "periodic" for kind in grid.boundary) or tuple(periodic)
    return _axes_of_grid(grid, wraps)


@kept
def _axes_of_grid(grid: Grid, periodic: tuple[bool, ...]) -> tuple[Axis, ...]:
    uniform = grid.is_uniform()
    return tuple(
        uniform_axis(len(centres), wraps) if uniform else Axis(centres, edges, weights, wraps, uniform=False)
        for centres, edges, weights, wraps in zip(
            grid.unit_coordinates(), grid.unit_edges(), grid.weights, periodic, strict=True
        )
    )


@kept
def _cut_axis(whole: Axis, ends: tuple[int, ...], space: SpaceGroup) -> Axis:
    """The part of this process of an axis that is cut at `ends`."""
    start, stop = ends[space.rank], ends[space.rank + 1]
    centres, edges, weights = whole.centres[start:stop], whole.edges[start : stop + 1], whole.weights[start:stop]
    return Axis(centres, edges, weights, whole.periodic, whole.uniform, whole, ends, space)


def over_parts(sums: Tensor, axes: Sequence[Axis]) -> Tensor:
    """Sums over the cells of all axes, of all parts where an axis is cut."""
    for axis in axes:
        sums = axis.summed(sums)
    return sums


def mean_over(values: Tensor, axes: Sequence[Axis]) -> Tensor:
    """Mean over the trailing axes by the cells' volumes, `(..., *space)` -> `(...)`."""
    weights = [axis.weights.to(values.dtype).to(values.device) for axis in axes]
    return over_parts(weighted_mean(values, weights), axes)


@kept
def uniform_axis(cells: int, periodic: bool) -> Axis:
    """Equal cells on [0, 1]."""
    edges = torch.arange(cells + 1, dtype=torch.float64) / cells
    centres = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    return Axis(centres, edges, torch.ones_like(centres) / cells, periodic, uniform=True)


@kept
def padded_axis(axis: Axis, cells: int) -> Axis:
    """The axis with `cells` more cells past its far end, as wide as its last one, scaled back to [0, 1]."""
    if axis.whole is not None and axis.space is not None:
        return _cut_axis(padded_axis(axis.whole, cells), (*axis.ends[:-1], axis.ends[-1] + cells), axis.space)
    if axis.uniform:
        return uniform_axis(axis.cells + cells, axis.periodic)
    steps = torch.arange(1, cells + 1, dtype=torch.float64) * axis.widths[-1]
    edges = torch.cat([axis.edges, axis.edges[-1] + steps])
    centres = torch.cat([axis.centres, axis.edges[-1] + steps - axis.widths[-1] / 2])
    weights = torch.cat([axis.weights, axis.weights[-1:].expand(cells)])
    return Axis(centres / edges[-1], edges / edges[-1], weights / weights.sum(), axis.periodic, uniform=False)


# Angles are computed in float64 and rounded once to the type of `like`.
@kept
def axis_transform(axis: Axis, basis: Basis, num_modes: int, like: Tensor) -> AxisTransform:
    """The transform of one axis for a layer of `num_modes`."""
    count = _mode_count(basis, num_modes, axis.total)
    analysis, synthesis = transform_matrices(basis, count, axis.centres, axis.widths)
    analysis = _resolved(analysis, torch.arange(count).repeat_interleave(analysis.shape[0] // count), basis, axis)
    mean = axis.weights @ synthesis
    if axis.whole is not None:
        mean = axis_transform(axis.whole, basis, num_modes, axis.centres).mean
    parts = [as_like(part, like) for part in (analysis, synthesis, mean, axis.weights)]
    one_mean = axis.uniform and basis in ("fourier", "cosine")
    return AxisTransform(parts[0], parts[1], parts[2], parts[3], count, one_mean)


def axis_transforms(axes: Sequence[Axis], bases: Sequence[Basis], modes: int, like: Tensor) -> list[AxisTransform]:
    """The transforms of all axes."""
    return [axis_transform(axis, basis, modes, like) for axis, basis in zip(axes, bases, strict=True)]


@kept
def signed_transform(axis: Axis, basis: Basis, num_modes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """`signed_matrices` of the modes 0 .. m - 1 and -m .. -1, as many of each as the cells resolve."""
    count = _mode_count(basis, num_modes, axis.total)
    negative = num_modes
    if not torch.compiler.is_compiling():
        negative = min(num_modes, resolved_modes(basis, MANY, axis.total) - 1)
    into, out = signed_matrices(basis, count, negative, axis.centres, axis.widths)
    orders = signed_orders(count, negative).abs().repeat(2)
    return as_like(_resolved(into, orders, basis, axis), like), as_like(out, like)


@kept
def wave_transform(axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    """All Fourier modes below what the cells resolve: frequencies `(L,)` in radians, analysis `(L, n)` complex."""
    highest = (axis.cells + 1) // 2 - 1
    order = 2 * math.pi * torch.arange(-highest, highest + 1, dtype=torch.float64)
    analysis = torch.polar(axis.widths.expand(len(order), -1), -order[:, None] * axis.centres)
    return as_like(order, like), analysis.to(like.dtype.to_complex()).to(like.device)


def _mode_count(basis: Basis, num_modes: int, cells: int) -> int:
    """Modes of a transform: those that the cells resolve; in a traced program, where cells are a symbol, all."""
    stored = stored_modes(basis, num_modes)
    return stored if torch.compiler.is_compiling() else resolved_modes(basis, num_modes, cells)


def _resolved(analysis: Tensor, orders: Tensor, basis: Basis, axis: Axis) -> Tensor:
    """In a traced program, rows of zeros for orders that the cells do not resolve."""
    if not torch.compiler.is_compiling():
        return analysis
    return analysis * (orders < resolved_modes(basis, MANY, axis.cells))[:, None]


def as_like(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor in the type and on the device of another, contiguous."""
    return tensor.to(like.dtype).to(like.device).contiguous()
