"""Kolmogorov-Arnold networks with learnable knots.

A layer sums one learnable function an edge,
    y_j = sum_i phi_{ji}(x_i),     phi_{ji}(x) = w_b b(x) + w_s sum_r c_r B_r(x; t_i),     b = SiLU,
with B-splines B_r of order k on G + 2k + 1 knots t_i, learned for each input.
Shapes: public calls take and give `(batch, features)`; inside, the batch is the last axis.

Knots are learned by
    t_0 = origin + (extent / 2) tanh(shift),     t_{j+1} - t_j = h_min + 2 gap_j sigmoid(logit_j):
gradients move them, and they stay in order for all values of the parameters.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypedDict, Unpack, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.nn.execution import force_fp32, fused, plain_forms
from spectrakan.nn.spline_layer import SplineLayer, extended_basis, plain_layer
from spectrakan.numerics import bspline
from spectrakan.numerics.quadrature import to_float64

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
        self.spline_order, self.num_intervals, self.extension = spline_order, num_intervals, extension
        # Equal spacing on the grid's range, and `spline_order` knots more on either side.
        steps = torch.arange(-spline_order, num_intervals + spline_order + 1, dtype=torch.float64)
        start = grid_range[0] + steps * (grid_range[1] - grid_range[0]) / num_intervals
        self.knots = Knots(start.to(torch.get_default_dtype()).expand(in_features, -1))
        scale = in_features**-0.5
        self.base_weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-1, 1) * scale * 3**0.5)
        self.spline_weight = nn.Parameter(torch.full((out_features, in_features), scale))
        self.coefficients = nn.Parameter(0.1 * torch.randn(out_features, in_features, num_intervals + spline_order))

    def forward(self, x: Tensor) -> Tensor:
        """`(batch, in)` -> `(batch, out)`."""
        return self.feature_major(x.T).T

    def feature_major(self, x: Tensor) -> Tensor:
        """The same on `(in, batch)` -> `(out, batch)`."""
        weights = self.base_weight, self.spline_weight, self.coefficients
        if self.extension == "zero" or plain_forms():
            return plain_layer(x, self.basis(x), *weights)
        given = x.contiguous(), self.knots(), *weights, self.spline_order
        return cast(Tensor, fused(SplineLayer, *given))

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
        basis = to_float64(self.basis(x.to(self.coefficients)))
        before = torch.einsum("oir,irn->oin", to_float64(self.coefficients), basis)
        self.knots.reset(fit_knots(x, self.num_intervals, self.spline_order, uniform_share))
        basis = to_float64(self.basis(x.to(self.coefficients)))
        self.coefficients.copy_(_least_squares(basis, before))


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


FLOOR = 0.01
"""Smallest spacing, as a share of the mean spacing that the knots start from."""


class Knots(nn.Module):
    """Strictly increasing sequences t_0 < t_1 < ..., one an input, learnable and sorted by construction.

    Every spacing lies between h_min and h_min + 2 gap_j for all parameters, so that rounding cannot make neighbours
    meet. Logits and shift start at zero, where the knots are the given ones.
    """

    origin: Tensor
    gap: Tensor
    min_spacing: Tensor

    def __init__(self, start: Tensor) -> None:
        """`start` `(inputs, knots)`: the knots before training."""
        super().__init__()
        inputs, count = start.shape
        self.register_buffer("origin", start.new_zeros(inputs, 1))
        self.register_buffer("gap", start.new_ones(inputs, count - 1))
        self.register_buffer("min_spacing", start.new_ones(inputs, 1))
        self.shift = nn.Parameter(start.new_zeros(inputs, 1))
        self.logit = nn.Parameter(start.new_zeros(inputs, count - 1))
        self.reset(start)

    def forward(self) -> Tensor:
        """The knots, `(inputs, knots)`."""
        extent = (self.gap + self.min_spacing).sum(1, keepdim=True)
        first = self.origin + extent / 2 * self.shift.tanh()
        # The margin keeps the least spacing through the rounding of the running sum.
        spacing = 1.001 * self.min_spacing + 2 * self.gap * self.logit.sigmoid()
        return torch.cat([first, first + spacing.cumsum(1)], dim=1)

    @torch.no_grad()
    def reset(self, start: Tensor) -> None:
        """Start again from given knots, `(inputs, knots)`; spacings below the floor are widened to it."""
        if start.is_meta:
            return
        spacing = to_float64(start).diff(dim=1)
        size = torch.maximum(to_float64(start).abs().amax(1, keepdim=True), spacing.sum(1, keepdim=True))
        floor = torch.maximum(FLOOR * spacing.mean(1, keepdim=True), 64 * torch.finfo(self.gap.dtype).eps * size)
        self.origin.copy_(start[:, :1])
        self.min_spacing.copy_(floor)
        self.gap.copy_((spacing - 1.001 * floor).clamp_min(0.1 * floor))
        self.shift.zero_()
        self.logit.zero_()


def fit_knots(samples: Tensor, num_intervals: int, order: int, uniform_share: float) -> Tensor:
    """Knots over the range of `samples` `(inputs, batch)`: quantiles mixed with equal spacing, `(inputs, knots)`."""
    share = torch.linspace(0, 1, num_intervals + 1, dtype=samples.dtype, device=samples.device)
    low, high = samples.amin(1, keepdim=True), samples.amax(1, keepdim=True)
    # A constant input still gets a grid of some width around its value.
    margin = torch.where(high - low > 1e-6 * (1 + high.abs()), 0.01 * (high - low), 0.5 * (1 + high.abs()))
    low, high = low - margin, high + margin
    even = low + share * (high - low)
    by_count = torch.quantile(samples, share, dim=1).T.clone()
    by_count[:, :1], by_count[:, -1:] = low, high
    inner = uniform_share * even + (1 - uniform_share) * by_count
    step = (high - low) / num_intervals
    outside = torch.arange(1, order + 1, dtype=samples.dtype, device=samples.device)
    return torch.cat([inner[:, :1] - outside.flip(0) * step, inner, inner[:, -1:] + outside * step], dim=1)
