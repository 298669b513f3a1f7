"""Attention among learned slices of the domain in place of attention among its cells.

Per head, with features x_i of cell i, its volume share v_i and projections f, g of the features:
    w_ik = softmax_k((S g_i + b)_k / temperature)             how much of cell i belongs to slice k
    z_k  = sum_i v_i w_ik f_i / sum_i v_i w_ik                 a slice's token: the mean over its cells
    z'   = softmax(Q z (K z)^T / sqrt(d_head)) V z             plain attention among the few tokens
    y_i  = sum_k w_ik z'_k                                     back to the cells; heads are joined by a linear map
Cells cost N * slices instead of N^2. Shapes: x `(batch, cells, width)`, weights `(batch, heads, cells, slices)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.errors import ConfigError

Projection = Literal["linear", "convolution"]
SMALLEST_SHARE = 1e-9
"""Added to a slice's volume, so that an empty slice has the token zero."""
COLDEST, HOTTEST = 0.1, 5.0


class SliceAttention(nn.Module):
    """See the file's equations; f and g are linear maps in each cell, or 3-wide convolutions over neighbours."""

    def __init__(
        self, width: int, num_heads: int, num_slices: int, *, projection: Projection = "linear", space_dims: int = 1
    ) -> None:
        super().__init__()
        if width % num_heads:
            raise ConfigError(f"width must be a multiple of num_heads, got {width} and {num_heads}")
        self.num_heads, self.projection = num_heads, projection
        self.content: nn.Module
        self.address: nn.Module
        if projection == "linear":
            self.content, self.address = nn.Linear(width, width), nn.Linear(width, width)
        else:
            convolution = getattr(nn, f"Conv{space_dims}d")
            self.content = convolution(width, width, 3, padding=1)
            self.address = convolution(width, width, 3, padding=1)
        head = width // num_heads
        self.slice = nn.Linear(head, num_slices)
        self.temperature = nn.Parameter(torch.full((num_heads,), 0.5))
        self.query, self.key, self.value = (nn.Linear(head, head, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(
        self, x: Float[Tensor, "batch cells width"], shares: Float[Tensor, " cells"], space: Sequence[int]
    ) -> Float[Tensor, "batch cells width"]:
        """Mix the cells of a grid of sizes `space` through the slices."""
        if self.folds:
            return self._folded(x, shares)
        weights = self.slice_weights(x, space)
        tokens = slice_tokens(weights, self._heads(self.content, x, space), shares)
        back: Tensor = self.out((weights @ self._mix(tokens)).transpose(1, 2).flatten(2))
        return back

    @property
    def folds(self) -> bool:
        """Whether linear maps of all cells are cheaper as maps of the slices: slices in all heads <= width."""
        return self.projection == "linear" and self.num_heads * self.slice.out_features <= self.out.in_features

    def slice_weights(self, x: Tensor, space: Sequence[int]) -> Float[Tensor, "batch heads cells slices"]:
        """How much of each cell belongs to each slice; sums to one over slices."""
        temperature = self.temperature.clamp(COLDEST, HOTTEST)[:, None, None]
        return torch.softmax(self.slice(self._heads(self.address, x, space)) / temperature, dim=-1)

    def _mix(self, tokens: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(self.query(tokens), self.key(tokens), self.value(tokens))

    def _heads(self, project: nn.Module, x: Tensor, space: Sequence[int]) -> Tensor:
        """Project, and split the width into heads: `(batch, heads, cells, d_head)`."""
        if self.projection == "linear":
            rows = project(x)
        else:
            rows = project(x.transpose(1, 2).unflatten(2, tuple(space))).flatten(2).transpose(1, 2)
        heads: Tensor = rows.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        return heads

    def _folded(self, x: Tensor, shares: Tensor) -> Tensor:
        """The same with every linear map moved from the cells to the slices, which are fewer.

        S (W x_i) = (S W) x_i;  sum_i w_ik W x_i = W sum_i w_ik x_i;  W_o sum_k w_ik z'_k = sum_k w_ik W_o z'_k.
        """
        heads, slices, width = self.num_heads, self.slice.out_features, self.out.in_features
        address, content = _by_head(self.address, heads), _by_head(self.content, heads)
        temperature = self.temperature.clamp(COLDEST, HOTTEST)[:, None, None]
        mapped = (self.slice.weight @ address[0] / temperature).flatten(0, 1)
        offset = ((address[1] @ self.slice.weight.T + self.slice.bias) / temperature[..., 0]).flatten()
        logits = F.linear(x, mapped, offset).unflatten(-1, (heads, slices))
        weights = torch.softmax(logits, dim=-1).flatten(2)
        volume = (shares @ weights).unflatten(1, (heads, slices))[..., None]
        pooled = (weights.transpose(1, 2) @ (x * shares[:, None])).unflatten(1, (heads, slices))
        tokens = (pooled @ content[0].transpose(1, 2) + volume * content[1][:, None]) / (volume + SMALLEST_SHARE)
        out = self.out.weight.T.unflatten(0, (heads, width // heads))
        back: Tensor = weights @ (self._mix(tokens) @ out).flatten(1, 2) + self.out.bias
        return back


def _by_head(project: nn.Module, heads: int) -> tuple[Tensor, Tensor]:
    """Weight `(heads, d_head, width)` and bias `(heads, d_head)` of a linear map."""
    weight, bias = project.get_parameter("weight"), project.get_parameter("bias")
    return weight.unflatten(0, (heads, -1)), bias.unflatten(0, (heads, -1))


def slice_tokens(
    weights: Float[Tensor, "batch heads cells slices"],
    rows: Float[Tensor, "batch heads cells head"],
    shares: Float[Tensor, " cells"],
) -> Float[Tensor, "batch heads slices head"]:
    """The mean of each slice by volume: the same at every resolution in the limit of small cells."""
    volume = weights.transpose(2, 3) @ shares
    sums = weights.transpose(2, 3) @ (rows * shares[:, None])
    return sums / (volume[..., None] + SMALLEST_SHARE)
