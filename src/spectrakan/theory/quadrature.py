"""The modulation as a quadrature: how fast it converges on finer grids, and the constant that bounds its error.

With w(y) = exp(<Q t, K f(y)> / c) and g = w V f, Z = int w, on n^d equal cells of side h = 1 / n:
    A = int g / Z,     A_h = sum_j g(y_j) / sum_j w(y_j)                                    the layer itself
    |A_h - A| <= sqrt(d) h (L_g + |A| L_w) / Z     for h <= Z / (sqrt(d) L_w)               (Proposition 3.3)
    |A_h - A| <= sqrt(d) h L_c / Z,     L_c = Lip(w (V f - A)) <= L_g + |A| L_w              ours, for the same h
Ours is the proof of the proposition with values counted from their mean A, which moves A_h and A alike.
Weights and keys are the model's own; features are continued between cell centres by cubic splines, of which L_w, L_g
and L_c are bounded rigorously, and A and Z are integrated by Gauss's rule between knots.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis, uniform_axis
from spectrakan.nn.modulation import GlobalModulation
from spectrakan.numerics.quadrature import cell_volumes
from spectrakan.theory.parts import modulation_inputs, modulation_layer
from spectrakan.theory.spline_field import SplineField, along_axes, spline_field

FLOOR = 1e-12
"""Errors below this share of |A| are rounding and say nothing about the order."""


@dataclass(frozen=True, eq=False)
class QuadratureStudy:
    """Errors of A_h and their bounds; samples and heads in front."""

    cells: tuple[int, ...]
    """Cells along each axis."""
    errors: Float[Tensor, "samples heads sizes"]
    """|A_h - A|."""
    values: Float[Tensor, "samples heads"]
    """|A|."""
    constants: Float[Tensor, "samples heads"]
    """sqrt(d) (L_g + |A| L_w) / Z, the paper's."""
    centred_constants: Float[Tensor, "samples heads"]
    """sqrt(d) L_c / Z, ours."""
    largest_steps: Float[Tensor, "samples heads"]
    """Z / (sqrt(d) L_w): the bounds hold for h up to this."""

    def bounds(self, *, centred: bool = False) -> Tensor:
        """The bound at every size, infinite where h is too large for it, `(samples, heads, sizes)`."""
        steps = 1 / torch.tensor(self.cells, dtype=torch.float64)
        constants = self.centred_constants if centred else self.constants
        return torch.where(steps <= self.largest_steps[..., None], constants[..., None] * steps, math.inf)

    @property
    def holds(self) -> bool:
        """Whether no error is above any of the two bounds."""
        return bool((self.errors <= self.bounds()).all() and (self.errors <= self.bounds(centred=True)).all())

    def orders(self) -> Float[Tensor, "samples heads"]:
        """Observed order: slope of log error over log h by least squares, NaN where fewer than two errors count."""
        step = -torch.tensor(self.cells, dtype=torch.float64).log()
        slopes = torch.full_like(self.values, math.nan)
        for sample, head in torch.cartesian_prod(*[torch.arange(size) for size in self.values.shape]).tolist():
            error = self.errors[sample, head]
            counts = error > FLOOR * self.values[sample, head]
            if int(counts.sum()) >= 2:
                x, y = step[counts] - step[counts].mean(), error[counts].log()
                slopes[sample, head] = (x * y).sum() / x.square().sum()
        return slopes

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, the worst and the mean over samples and heads; None stands for what does not exist."""
        orders = [float(order) for order in self.orders().flatten() if math.isfinite(order)]
        tightest = self.bounds(centred=True) / self.errors.clamp_min(torch.finfo(torch.float64).tiny)
        covered = torch.isfinite(tightest)
        return {
            "cells": list(self.cells),
            "mean_relative_errors": (self.errors / self.values[..., None]).mean((0, 1)).tolist(),
            "orders": orders,
            "constant_paper": float(self.constants.max()),
            "constant_ours": float(self.centred_constants.max()),
            "least_cells": math.ceil(1 / float(self.largest_steps.min())),
            "least_ratio_bound_to_error": float(tightest[covered].min()) if bool(covered.any()) else None,
            "holds": self.holds,
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
    asked = modulation_inputs(model, x, params, grid)
    layer = copy.deepcopy(modulation_layer(model)).double()
    token = asked.token.double()
    columns: list[list[Tensor]] = []
    for sample in range(token.shape[0]):
        field = spline_field(asked.features[:, sample], asked.axes)
        columns.append(_study(layer, token[sample : sample + 1], field, cells))
    errors, values, paper, ours, steps = (torch.stack(parts) for parts in zip(*columns, strict=True))
    return QuadratureStudy(tuple(cells), errors, values, paper, ours, steps)


def attention_kernel(
    layer: GlobalModulation,
    token: Float[Tensor, "batch token"],
    features: Float[Tensor, "channel batch *space"],
    axes: Sequence[Axis],
) -> Float[Tensor, "batch heads *space"]:
    """kappa_u(x, y) = exp(s(y)) / int exp(s), the same for all x: a density over y, whose integral is one.

    The layer is the integral operator with kernel kappa_u(x, y) W_V: A = sum_y |y| kappa_u(y) W_V f(y).
    """
    scores: Tensor = torch.einsum("bhc,cb...->bh...", layer.feature_query(token), features)
    space = tuple(range(2, scores.ndim))
    weights = (scores - scores.amax(space, keepdim=True)).exp()
    volumes = cell_volumes([axis.weights.to(weights) for axis in axes])
    return weights / (weights * volumes).sum(space, keepdim=True)


def _study(layer: GlobalModulation, token: Tensor, field: SplineField, cells: Sequence[int]) -> list[Tensor]:
    """Errors, |A| and constants of one sample, all heads: `(heads, sizes)` and `(heads,)` each."""
    query = layer.feature_query(token)[0]
    rows = [_constants(field, query[head], layer.value[head]) for head in range(layer.num_heads)]
    exact = torch.stack([row[0] for row in rows])
    errors = []
    for count in cells:
        axes = [uniform_axis(count, False)] * len(field.axes)
        features = field.at([axis.centres for axis in axes])[:, None]
        found = layer(token, features, axes).view_as(exact)
        errors.append((found - exact).norm(dim=1))
    constants = torch.tensor([row[1] for row in rows], dtype=torch.float64)
    return [torch.stack(errors, dim=1), exact.norm(dim=1), *constants.T]


def _constants(field: SplineField, query: Tensor, value: Tensor) -> tuple[Tensor, tuple[float, float, float]]:
    """A of one head, and the paper's constant, ours, and the largest h for which they hold."""
    score, values = field.mapped(query[None]), field.mapped(value)
    highest = score.largest()[0]
    # Weights are counted in units of the largest one, which cancels in every ratio below.
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


def _integral(field: SplineField, score: SplineField, shift: Tensor, points: int = 6) -> tuple[Tensor, Tensor]:
    """Int w f / Z over the unit box `(channel,)`, and Z, by Gauss's rule on every span between knots.

    The weights are brought onto the coefficients first, so that features are never evaluated at all the points.
    """
    places, weights = zip(*(axis.gauss_points(points) for axis in field.axes), strict=True)
    volumes = reduce(lambda left, right: left[..., None] * right, weights)
    density = (score.at(places)[0] - shift).exp() * volumes
    mass = density.sum()
    back = [axis.basis(place).T for axis, place in zip(field.axes, places, strict=True)]
    onto_control = along_axes(density[None], back)[0]
    return (field.control * onto_control).flatten(1).sum(1) / mass, mass
