"""Kolmogorov-Arnold networks with learnable knots.

A layer sums one learnable function an edge,
    y_j = sum_i phi_{ji}(x_i),     phi_{ji}(x) = w_b b(x) + w_s sum_r c_r B_r(x; t_i),     b = SiLU,
with B-splines B_r of order k on G + 2k + 1 knots t_i, learned for each input.
Shapes: public calls take and give `(batch, features)`; inside, the batch is the last axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypedDict, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.nn.execution import force_fp32
from spectrakan.nn.splines import Knots, extended_basis, fit_knots, split_knots
from spectrakan.numerics import bspline
from spectrakan.numerics.float64 import to_float64

Extension = Literal["linear", "zero"]


class SplineOptions(TypedDict, total=False):
    """Options of the splines that all layers of a KAN share; the defaults are those of `KANLayer`."""

    spline_order: int
    num_intervals: int
    extension: Extension
    grid_range: tuple[float, float]


class KANLayer(nn.Module):
    """One layer of edge functions; see the file's equation.

    `extension="linear"` continues each spline straight beyond its grid with value and slope kept;
    `"zero"` lets it fall to zero over the outer knots, as in the paper.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        spline_order: int = 3,
        num_intervals: int = 5,
        extension: Extension = "linear",
        grid_range: tuple[float, float] = (-1.0, 1.0),
    ) -> None:
        super().__init__()
        if spline_order < 1 or num_intervals < 1:
            raise ConfigError(
                f"a spline needs order >= 1 and at least one interval, got order {spline_order} "
                f"and {num_intervals} intervals"
            )
        self.in_features, self.out_features = in_features, out_features
        self.spline_order, self.extension = spline_order, extension
        start = bspline.uniform_knots(*grid_range, num_intervals, spline_order).to(torch.get_default_dtype())
        self.knots = Knots(start.expand(in_features, -1))
        scale = in_features**-0.5
        self.base_weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-1, 1) * scale * 3**0.5)
        self.spline_weight = nn.Parameter(torch.full((out_features, in_features), scale))
        self.coefficients = nn.Parameter(0.1 * torch.randn(out_features, in_features, num_intervals + spline_order))

    @property
    def num_intervals(self) -> int:
        """Number G of knot intervals inside the grid."""
        return self.coefficients.shape[-1] - self.spline_order

    def forward(self, x: Tensor) -> Tensor:
        """`(batch, in)` -> `(batch, out)`."""
        return self.feature_major(x.T).T

    def feature_major(self, x: Tensor) -> Tensor:
        """The same on `(in, batch)` -> `(out, batch)`: all edges at once as two matrix products."""
        basis = self.basis(x).flatten(0, 1)
        weights = (self.spline_weight[..., None] * self.coefficients).flatten(1)
        return torch.addmm(self.base_weight @ F.silu(x), weights, basis)

    def basis(self, x: Tensor) -> Tensor:
        """All B-splines at x `(in, batch)`, with the chosen extension: `(in, G + k, batch)`."""
        knots, order = self.knots(), self.spline_order
        if self.extension == "zero":
            return bspline.evaluate_basis(x, knots, order)
        return extended_basis(x, knots, order)

    @torch.no_grad()
    def edge_curves(self, points: Tensor) -> Tensor:
        """Values of every edge function, for plotting: points `(in, n)` -> `(out, in, n)`."""
        weights = self.spline_weight[..., None] * self.coefficients
        spline = torch.einsum("oir,irn->oin", weights, self.basis(points))
        return self.base_weight[..., None] * F.silu(points) + spline

    @torch.no_grad()
    def fit_grid(self, samples: Tensor, *, uniform_share: float = 0.1) -> None:
        """Move the grid to where `samples` `(batch, in)` are; edge functions keep their values there.

        Knots become a mix of quantiles and equal spacing (`uniform_share` of the latter); coefficients are
        refitted by least squares at the samples.
        """
        x = to_float64(samples.T)
        before = self._spline_values(x)
        self.knots.reset(fit_knots(x, self.num_intervals, self.spline_order, uniform_share))
        basis = to_float64(self.basis(x.to(self.coefficients)))
        self.coefficients.copy_(_least_squares(basis, before))

    @torch.no_grad()
    def refine(self, num_intervals: int) -> None:
        """Take more intervals without changing the function: old knots stay, new ones split the widest gaps.

        Splines on a set of knots are splines on any larger set, so collocation at as many points as there are
        basis functions finds the same function.
        """
        old, order = to_float64(self.knots()), self.spline_order
        fine = split_knots(old, num_intervals, order)
        knots = Knots(fine.to(self.coefficients))
        knots.reset(fine, exact=True)
        new = to_float64(knots())  # as the layer will compute them, in its own precision
        points = bspline.greville_points(new, order)
        values = torch.einsum(
            "oir,irn->oin", to_float64(self.coefficients), bspline.evaluate_basis(points, old, order)
        )
        collocation = bspline.evaluate_basis(points, new, order).transpose(1, 2)
        solved = torch.linalg.solve(collocation, values.permute(1, 2, 0)).permute(2, 0, 1)
        self.knots = knots
        self.coefficients = nn.Parameter(solved.to(self.coefficients))

    def lipschitz_bounds(self) -> Tensor:
        """Lemma 3.1 for every edge: |w_b| L_b + |w_s| (2 / h_min) ||c||_1, `(out, in)`, differentiable."""
        spacing: Tensor = self.knots().diff(dim=1).min(dim=1).values
        spline = self.spline_weight.abs() * self.coefficients.abs().sum(-1) * 2 / spacing
        return self.base_weight.abs() * SILU_LIPSCHITZ + spline

    def _spline_values(self, x: Tensor) -> Tensor:
        basis = to_float64(self.basis(x.to(self.coefficients)))
        values: Tensor = torch.einsum("oir,irn->oin", to_float64(self.coefficients), basis)
        return values


SILU_LIPSCHITZ = 1.0998393202
"""sup |SiLU'|, reached at x = 2.3994 (rounded up)."""


class KAN(nn.Module):
    """A chain of `KANLayer`s of the given widths: t = Phi_{L-1}( ... Phi_0(z)).

    >>> kan = KAN([2, 5, 1])
    >>> kan(torch.zeros(7, 2)).shape
    torch.Size([7, 1])
    """

    def __init__(self, widths: Sequence[int], **options: Unpack[SplineOptions]) -> None:
        super().__init__()
        if len(widths) < 2 or min(widths) < 1:
            raise ConfigError(f"a KAN needs at least an input and an output width, all positive, got {list(widths)}")
        self.layers = nn.ModuleList(KANLayer(before, after, **options) for before, after in pairwise(widths))

    @force_fp32
    def forward(self, x: Tensor) -> Tensor:
        """`(batch, widths[0])` -> `(batch, widths[-1])`."""
        expected = self._layers()[0].in_features
        if x.ndim != 2 or x.shape[1] != expected:
            raise ShapeError(f"this KAN takes (batch, {expected}), got {tuple(x.shape)}")
        features = x.T
        for layer in self._layers():
            features = layer.feature_major(features)
        return features.T

    @torch.no_grad()
    def fit_grid(self, samples: Tensor, *, uniform_share: float = 0.1) -> None:
        """Fit every layer's grid to what `samples` `(batch, widths[0])` become on their way through."""
        for layer in self._layers():
            layer.fit_grid(samples, uniform_share=uniform_share)
            samples = layer(samples)

    def refine(self, num_intervals: int) -> None:
        """Take more intervals in every layer; the function stays the same."""
        for layer in self._layers():
            layer.refine(num_intervals)

    def _layers(self) -> list[KANLayer]:
        return [layer for layer in self.layers if isinstance(layer, KANLayer)]


def _least_squares(basis: Tensor, values: Tensor) -> Tensor:
    """Coefficients `(out, in, basis)` whose splines come closest to `values` `(out, in, batch)` at the samples.

    A small ridge term keeps functions without samples at the smallest coefficients.
    """
    gram = basis @ basis.transpose(1, 2)
    ridge = 1e-9 * gram.diagonal(dim1=1, dim2=2).mean(1)[:, None, None] * torch.eye(gram.shape[1], dtype=gram.dtype)
    moments = torch.einsum("irn,oin->iro", basis, values)
    solved: Tensor = torch.linalg.solve(gram + ridge, moments)
    return solved.permute(2, 0, 1)
