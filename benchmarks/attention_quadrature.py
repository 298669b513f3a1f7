"""The modulation as a quadrature: how fast it converges on finer grids, and the constant that bounds its error.

With w(y) = exp(<Q t, K f(y)> / c) and g = w V f, Z = int w, on n^d equal cells of side h <= Z / (sqrt(d) L_w):
    A = int g / Z,     A_h = sum_j g(y_j) / sum_j w(y_j)                                    the layer itself
    |A_h - A| <= sqrt(d) h (L_g + |A| L_w) / Z                                              (Proposition 3.3)
    |A_h - A| <= sqrt(d) h L_c / Z,     L_c = Lip(w (V f - A)) <= L_g + |A| L_w             values counted from A
Features are continued between cell centres by cubic splines, f(y) = sum_r c_r B_{r_1}(y_1) ... B_{r_d}(y_d).
B-splines are positive and sum to one, so between knots f lies in the convex hull of 4^d coefficients: maxima over
windows of them bound f, its slopes and norms, and so L_w, L_g and L_c. A and Z are integrated by Gauss's rule.
Shapes: values `(channel, *space)`, coefficients `(channel, *control)`, everything in float64.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis, uniform_axis
from spectrakan.numerics.bspline import evaluate_basis
from spectrakan.numerics.quadrature import cell_volumes

FLOOR = 1e-12
"""Errors below this share of |A| are rounding and are left out of the order."""
ORDER = 3
"""Order of the splines."""

Verdict = Literal["holds", "broken", "not informative"]


@dataclass(frozen=True, eq=False)
class QuadratureStudy:
    """Errors of A_h and their bounds for every sample."""

    cells: tuple[int, ...]
    """Cells along each axis."""
    errors: Float[Tensor, "samples sizes"]
    """|A_h - A|."""
    values: Float[Tensor, " samples"]
    """|A|."""
    constants: Float[Tensor, " samples"]
    """sqrt(d) (L_g + |A| L_w) / Z, the paper's."""
    centred_constants: Float[Tensor, " samples"]
    """sqrt(d) L_c / Z, ours."""
    largest_steps: Float[Tensor, " samples"]
    """Z / (sqrt(d) L_w): the bounds apply to h up to this."""

    def bounds(self, *, centred: bool = False) -> Float[Tensor, "samples sizes"]:
        """The bound at every size, infinite where h is too large for it."""
        steps = 1 / torch.tensor(self.cells, dtype=torch.float64)
        constants = self.centred_constants if centred else self.constants
        return torch.where(steps <= self.largest_steps[:, None], constants[:, None] * steps, math.inf)

    @property
    def informative(self) -> float:
        """Share of samples with a size that the bounds apply to."""
        return float(self.bounds().isfinite().any(-1).double().mean())

    @property
    def verdict(self) -> Verdict:
        """Whether all errors are below both bounds; `not informative` unless each sample has been tested."""
        if bool((self.errors > torch.minimum(self.bounds(), self.bounds(centred=True))).any()):
            return "broken"
        return "holds" if self.informative == 1 else "not informative"

    def orders(self) -> Float[Tensor, " samples"]:
        """Observed order: slope of log error over log h by least squares, NaN where fewer than two errors count."""
        step = -torch.tensor(self.cells, dtype=torch.float64).log()
        slopes = torch.full_like(self.values, math.nan)
        for sample, error in enumerate(self.errors):
            counts = error > FLOOR * self.values[sample]
            if int(counts.sum()) >= 2:
                x, y = step[counts] - step[counts].mean(), error[counts].log()
                slopes[sample] = (x * y).sum() / x.square().sum()
        return slopes

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, the worst and the mean over samples; None where there is none."""
        orders = [order for order in self.orders().tolist() if math.isfinite(order)]
        tightest = self.bounds(centred=True) / self.errors.clamp_min(torch.finfo(torch.float64).tiny)
        covered = torch.isfinite(tightest)
        return {
            "cells": list(self.cells),
            "mean_relative_errors": (self.errors / self.values[:, None]).mean(0).tolist(),
            "orders": orders,
            "constant_paper": float(self.constants.max()),
            "constant_ours": float(self.centred_constants.max()),
            "least_cells": math.ceil(1 / float(self.largest_steps.min())),
            "least_ratio_bound_to_error": float(tightest[covered].min()) if bool(covered.any()) else None,
            "verdict": self.verdict,
            "informative": self.informative,
        }


@torch.no_grad()
def attention_quadrature(
    model: Operator,
    x: Tensor,
    params: Tensor | None = None,
    grid: Grid | None = None,
    *,
    cells: Sequence[int] = (16, 32, 64, 128),
) -> QuadratureStudy:
    """Study the model's modulation of physical inputs `(samples, history, *space, field)` on grids of `cells`^d."""
    if min(cells) < 1:
        raise ConfigError(f"expected grids of at least one cell, got {list(cells)}")
    if not isinstance(model, SpectraKAN) or model.gml is None:
        raise ConfigError(
            f"expected a model with global modulation (spectrakan with use_gml), got '{model.name}' without it"
        )
    token, features, axes = model.token_and_features(x, params, grid)
    layer, token = copy.deepcopy(model.gml).double(), token.double()
    columns = []
    for sample in range(len(token)):
        field, own = spline_field(features[:, sample], axes), token[sample : sample + 1]
        exact, constants = _constants(field, layer.feature_query(own)[0, 0], layer.value[0])
        errors = []
        for count in cells:
            finer = [uniform_axis(count, False)] * len(axes)
            found = layer(own, field.at([axis.centres for axis in finer])[:, None], finer)
            errors.append((found[0] - exact).norm())
        columns.append([torch.stack(errors), exact.norm(), *torch.tensor(constants, dtype=torch.float64)])
    return QuadratureStudy(tuple(cells), *(torch.stack(parts) for parts in zip(*columns, strict=True)))


def _constants(field: SplineField, query: Tensor, value: Tensor) -> tuple[Tensor, tuple[float, float, float]]:
    """A, and the paper's constant, ours, and the largest h for which they hold."""
    score, values = field.mapped(query[None]), field.mapped(value)
    highest = score.largest()[0]
    # Weights are in units of the largest one, which cancels in every ratio below.
    shift = highest.max()
    exact, mass = _integral(field, score, shift)
    exact = value @ exact
    weight, steepness = (highest - shift).exp(), score.largest_slope()
    lip_w = (weight * steepness).max()
    lip_g = (weight * (values.largest_norm() * steepness + values.largest_slope())).max()
    lip_c = (weight * (values.largest_norm(exact) * steepness + values.largest_slope())).max()
    root = math.sqrt(len(field.axes))
    paper, ours = root * (lip_g + exact.norm() * lip_w) / mass, root * lip_c / mass
    largest = mass / (root * lip_w) if lip_w > 0 else torch.tensor(math.inf)
    return exact, (float(paper), float(ours), float(largest))


def _integral(field: SplineField, score: SplineField, shift: Tensor, count: int = 6) -> tuple[Tensor, Tensor]:
    """Int w f / Z over the unit box `(channel,)`, and Z, by Gauss's rule on every span between knots.

    The weights are mapped onto the coefficients first, so that features are not evaluated at all the points.
    """
    points, weights = zip(*(axis.gauss_points(count) for axis in field.axes), strict=True)
    density = (score.at(points)[0] - shift).exp() * cell_volumes(weights)
    mass = density.sum()
    back = [axis.basis(each).T for axis, each in zip(field.axes, points, strict=True)]
    onto_control = along_axes(density[None], back)[0]
    return (field.control * onto_control).flatten(1).sum(1) / mass, mass


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
        node, weight = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(count))
        lengths = edges.diff()[:, None]
        points = edges[:-1, None] + lengths * (node + 1) / 2
        return points.flatten(), (lengths * weight / 2).flatten()


def spline_axis(axis: Axis) -> SplineAxis:
    """Splines through the cell centres of an axis of equal cells: periodic, or with not-a-knot ends."""
    cells = axis.cells
    if not axis.uniform or cells < ORDER + 1:
        kind = "equal" if axis.uniform else "unequal"
        raise ShapeError(f"expected at least {ORDER + 1} equal cells along each axis, got {cells} {kind} ones")
    if axis.periodic:
        # Knots at the cell centres; coefficients -2 .. n + 1, the outer ones are copies of the inner ones.
        knots = (torch.arange(-4, cells + 4, dtype=torch.float64) + 0.5) / cells
        near = torch.eye(cells, dtype=torch.float64)
        collocation = (4 * near + near.roll(1, 0) + near.roll(-1, 0)) / 6
        return SplineAxis(knots, torch.linalg.inv(collocation)[torch.arange(-2, cells + 2) % cells])
    ends = torch.ones(ORDER + 1, dtype=torch.float64)
    knots = torch.cat([0 * ends, axis.centres[2:-2], ends])
    collocation = evaluate_basis(axis.centres[None], knots[None], ORDER)[0].T
    return SplineAxis(knots, torch.linalg.inv(collocation))


@dataclass(frozen=True, eq=False)
class SplineField:
    """A function on the unit box by its coefficients `(channel, *control)`."""

    control: Tensor
    axes: tuple[SplineAxis, ...]

    def at(self, points: Sequence[Tensor]) -> Tensor:
        """Values at the tensor product of points, `(channel, *points)`."""
        return along_axes(self.control, [axis.basis(each) for axis, each in zip(self.axes, points, strict=True)])

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
        for dim, axis in enumerate(self.axes):
            windows = [ORDER if dim == other else ORDER + 1 for other in range(len(self.axes))]
            along = axis.slopes(self.control, dim + 1).norm(dim=0)
            total = total + _window_max(along[None], windows)[0].square()
        return total.sqrt()


def spline_field(values: Tensor, axes: Sequence[Axis]) -> SplineField:
    """The smooth function through values `(channel, *space)` at cell centres."""
    splines = tuple(spline_axis(axis) for axis in axes)
    return SplineField(along_axes(values.double(), [axis.from_values for axis in splines]), splines)


def along_axes(values: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """One matrix `(new, old)` along each axis of `(channel, *old)`, giving `(channel, *new)`."""
    for dim, matrix in enumerate(matrices, start=1):
        values = torch.tensordot(matrix, values, dims=([1], [dim])).movedim(0, dim)
    return values


def _window_max(values: Tensor, windows: Sequence[int]) -> Tensor:
    """Maxima over all windows of neighbouring coefficients, `(channel, *control)` -> `(channel, *spans)`."""
    for dim, size in enumerate(windows, start=1):
        values = values.unfold(dim, size, 1).amax(-1)
    return values
