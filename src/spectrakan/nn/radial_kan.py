"""Kolmogorov-Arnold networks whose edge functions are sums of Gaussian bumps.

    y_j = sum_i sum_r W_jir exp(-((x_i - c_r) / h)^2),     h = (c_max - c_min) / (count - 1) at the start,
the centres c shared by all inputs of a layer; between layers a tanh brings the features into [-1, 1], where the
next layer's centres lie. Shapes: `(..., in)` -> `(..., out)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from spectrakan.errors import ConfigError
from spectrakan.nn.execution import force_fp32
from spectrakan.numerics.radial import radial_basis


class RadialKANLayer(nn.Module):
    """One layer of edge functions; see the file's equation. The centres learn; h stays."""

    bump_width: Tensor

    def __init__(self, in_features: int, out_features: int, num_centres: int) -> None:
        super().__init__()
        if num_centres < 2:
            raise ConfigError(f"a radial layer needs at least 2 centres, got {num_centres}")
        self.centres = nn.Parameter(torch.zeros(num_centres))
        self.register_buffer("bump_width", torch.ones(()))
        self.spread(-1.0, 1.0)
        # About 1.25 neighbouring bumps differ from zero at a time, in mean square: the output starts at unit scale.
        self.weight = nn.Parameter(
            torch.randn(out_features, in_features * num_centres) * (1.25 * in_features) ** -0.5
        )

    @torch.no_grad()
    def spread(self, low: float, high: float) -> None:
        """Put the centres evenly on [low, high] and set the bumps' width to their spacing."""
        count = self.centres.shape[0]
        self.centres.copy_(torch.linspace(low, high, count))
        self.bump_width.fill_((high - low) / (count - 1))

    def forward(self, x: Tensor) -> Tensor:
        """All edges at once as one matrix product."""
        return nn.functional.linear(radial_basis(x, self.centres, self.bump_width).flatten(-2), self.weight)


class RadialKAN(nn.Module):
    """Layers of the given widths with tanh between them; the first one's centres lie on `span`."""

    def __init__(self, widths: Sequence[int], num_centres: int, *, span: tuple[float, float] = (-1.0, 1.0)) -> None:
        super().__init__()
        layers = [RadialKANLayer(inputs, outputs, num_centres) for inputs, outputs in pairwise(widths)]
        layers[0].spread(*span)
        self.layers = nn.ModuleList(layers)

    @force_fp32
    def forward(self, x: Tensor) -> Tensor:
        """`(..., widths[0])` -> `(..., widths[-1])`."""
        first, *rest = self.layers
        x = first(x)
        for layer in rest:
            x = layer(x.tanh())
        return x

    def fit_span(self, samples: Tensor) -> None:
        """Spread the first layer's centres over the range of samples of its input."""
        low, high = float(samples.min()), float(samples.max())
        if high > low:
            first = self.layers[0]
            if isinstance(first, RadialKANLayer):
                first.spread(low, high)
