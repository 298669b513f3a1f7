"""A field on cells as a smooth function on the unit box: tensor products of cubic splines through the cell centres.

    f(y) = sum_r c_{r_1 .. r_d} B_{r_1}(y_1) ... B_{r_d}(y_d)

B-splines are positive and sum to one, so on every span between knots f lies in the convex hull of the 4^d
coefficients that live there: maxima over small windows of them bound f, its slopes and the norms of both, rigorously.
Shapes: values `(channel, *space)`, coefficients `(channel, *control)`, everything in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.nn.axis import Axis
from spectrakan.numerics.bspline import evaluate_basis

ORDER = 3


@dataclass(frozen=True, eq=False)
class SplineAxis:
    """Splines along one axis: knots `(m + 4,)`, and the matrix `(m, n)` from cell values to coefficients."""

    knots: Tensor
    from_values: Tensor

    def basis(self, points: Float[Tensor, " points"]) -> Float[Tensor, "points control"]:
        """All B-splines at points inside (0, 1)."""
        return evaluate_basis(points[None], self.knots[None], ORDER)[0].T

    def slopes(self, control: Tensor, dim: int) -> Tensor:
        """Coefficients of the derivative along axis `dim` of coefficients: one fewer."""
        inner = self.knots[1:-1]
        spans = inner[ORDER:] - inner[:-ORDER]
        shape = [1] * control.ndim
        shape[dim] = -1
        return ORDER * control.diff(dim=dim) / spans.view(shape)

    def gauss_points(self, count: int) -> tuple[Tensor, Tensor]:
        """Gauss-Legendre points and weights, `count` on each span between knots inside [0, 1]."""
        edges = self.knots[ORDER : len(self.knots) - ORDER].clamp(0, 1)
        place, weight = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(count))
        lengths = edges.diff()[:, None]
        points = edges[:-1, None] + lengths * (place + 1) / 2
        return points.flatten(), (lengths * weight / 2).flatten()


def spline_axis(axis: Axis) -> SplineAxis:
    """Splines through the cell centres of an axis of equal cells: periodic, or with not-a-knot ends."""
    if not axis.uniform or axis.cells < ORDER + 1:
        raise ShapeError(f"expected at least {ORDER + 1} equal cells along each axis, got {axis.cells} others")
    return _periodic(axis) if axis.periodic else _open(axis)


def _open(axis: Axis) -> SplineAxis:
    centres, ends = axis.centres, torch.ones(ORDER + 1, dtype=torch.float64)
    knots = torch.cat([0 * ends, centres[2:-2], ends])
    collocation = evaluate_basis(centres[None], knots[None], ORDER)[0].T
    return SplineAxis(knots, torch.linalg.inv(collocation))


def _periodic(axis: Axis) -> SplineAxis:
    """Knots at the cell centres; coefficients -2 .. n + 1, those outside being copies of those inside."""
    cells = axis.cells
    knots = (torch.arange(-4, cells + 4, dtype=torch.float64) + 0.5) / cells
    near = torch.eye(cells, dtype=torch.float64)
    collocation = (4 * near + near.roll(1, 0) + near.roll(-1, 0)) / 6
    wrapped = torch.arange(-2, cells + 2) % cells
    return SplineAxis(knots, torch.linalg.inv(collocation)[wrapped])


@dataclass(frozen=True, eq=False)
class SplineField:
    """A function on the unit box by its coefficients `(channel, *control)`."""

    control: Tensor
    axes: tuple[SplineAxis, ...]

    def at(self, points: Sequence[Tensor]) -> Tensor:
        """Values at the tensor product of points, `(channel, *points)`."""
        return along_axes(self.control, [axis.basis(place) for axis, place in zip(self.axes, points, strict=True)])

    def mapped(self, matrix: Float[Tensor, "out channel"]) -> SplineField:
        """A linear map of the channels; the function's coefficients are mapped alike."""
        return SplineField(torch.tensordot(matrix, self.control, dims=([1], [0])), self.axes)

    def largest(self) -> Tensor:
        """An upper bound of every channel's values on every span, `(channel, *spans)`."""
        return _window_max(self.control, [ORDER + 1] * len(self.axes))

    def largest_norm(self, centre: Tensor | None = None) -> Tensor:
        """A bound of |f - centre| on every span, `(*spans)`; `centre` `(channel,)` is zero unless given."""
        moved = self.control if centre is None else self.control - centre.view(-1, *[1] * len(self.axes))
        return _window_max(moved.norm(dim=0)[None], [ORDER + 1] * len(self.axes))[0]

    def largest_slope(self) -> Tensor:
        """A bound of the operator norm of the gradient on every span, `(*spans)`."""
        total = torch.zeros((), dtype=torch.float64)
        for place, axis in enumerate(self.axes):
            windows = [ORDER if place == other else ORDER + 1 for other in range(len(self.axes))]
            along = axis.slopes(self.control, place + 1).norm(dim=0)
            total = total + _window_max(along[None], windows)[0].square()
        return total.sqrt()


def spline_field(values: Tensor, axes: Sequence[Axis]) -> SplineField:
    """The smooth function through values `(channel, *space)` at cell centres."""
    splines = tuple(spline_axis(axis) for axis in axes)
    return SplineField(along_axes(values.double(), [axis.from_values for axis in splines]), splines)


def along_axes(values: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """One matrix `(new, old)` along each axis of `(channel, *old)`, giving `(channel, *new)`."""
    for place, matrix in enumerate(matrices, start=1):
        values = torch.tensordot(matrix, values, dims=([1], [place])).movedim(0, place)
    return values


def _window_max(values: Tensor, windows: Sequence[int]) -> Tensor:
    """Maxima over all windows of neighbouring coefficients, `(channel, *control)` -> `(channel, *spans)`."""
    for place, size in enumerate(windows, start=1):
        values = values.unfold(place, size, 1).amax(-1)
    return values
