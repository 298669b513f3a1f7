"""Learnable knots, and all B-splines of an input on them with straight continuation.

    t_0 = origin + (extent / 2) tanh(shift),     t_{j+1} - t_j = h_min + 2 gap_j sigmoid(logit_j)

Gradients move the knots, and they stay in order for all values of the parameters.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.errors import ConfigError
from spectrakan.numerics import bspline
from spectrakan.numerics.float64 import to_float64

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
        if not bool((spacing >= 0).all()):
            raise ConfigError("knots must not decrease")
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


def extended_basis(
    x: Float[Tensor, "inputs batch"], knots: Float[Tensor, "inputs knots"], order: int
) -> Float[Tensor, "inputs basis batch"]:
    """All basis functions at x, continued as straight lines beyond the grid: B(end) + (x - end) B'(end)."""
    first, last = knots[:, order, None], knots[:, -order - 1, None]
    held = torch.minimum(torch.maximum(x, first), last)
    intervals = knots.shape[1] - 2 * order - 1
    interval = bspline.find_interval(held, knots).clamp(order, order + intervals - 1)
    local = bspline.local_basis(held, knots, interval, order, x - held)
    basis = interval[:, None] + torch.arange(-order, 1, device=x.device)[:, None]
    return x.new_zeros(x.shape[0], intervals + order, x.shape[1]).scatter(1, basis, local)
