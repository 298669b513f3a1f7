"""The global modulation layer: one query, made from the token, asks the whole field.

    A = sum_y alpha(y) V f(y),     alpha(y) = w_y exp(s_y) / sum_z w_z exp(s_z),     s_y = <Q t, K f(y)> / c

with w_y the volume of cell y, so that the sum is a quadrature of the integral and does not depend on the grid.
The paper divides scores by sqrt(d_a) in one place and by d in another: c is `root` or `width` of d_a. By the width
they begin small, and grow more slowly as Q and K learn.
Keys and values are never formed: <Q t, K f> = <K^T Q t, f>, and V goes behind the sum.
Shapes: features `(channel, batch, *space)`, token `(batch, token_width)`, A `(batch, heads * value_width)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis
from spectrakan.nn.precision import unmixed

Scaling = Literal["root", "width"]


class GlobalModulation(nn.Module):
    """Single-query attention over all cells, with several heads if asked; see the file's equation."""

    def __init__(
        self,
        width: int,
        token_width: int,
        attention_width: int,
        *,
        num_heads: int = 1,
        value_width: int | None = None,
        scaling: Scaling = "root",
    ) -> None:
        super().__init__()
        self.num_heads, self.attention_width = num_heads, attention_width
        self.divisor = float(attention_width) if scaling == "width" else math.sqrt(attention_width)
        value_width = attention_width if value_width is None else value_width
        self.query = nn.Linear(token_width, num_heads * attention_width)
        # A bias on the keys would add the same to all scores, which softmax does not see.
        self.key = nn.Parameter(torch.randn(num_heads, attention_width, width) * width**-0.5)
        self.value = nn.Parameter(torch.randn(num_heads, value_width, width) * width**-0.5)

    @unmixed
    def forward(
        self,
        token: Float[Tensor, "batch token"],
        features: Float[Tensor, "channel batch *space"],
        axes: Sequence[Axis],
    ) -> Float[Tensor, "batch values"]:
        """The value that the token's query pulls out of the features."""
        pooled = attention_pool(features, self.feature_query(token), volume_logits(axes, features))
        return torch.einsum("bhc,hvc->bhv", pooled, self.value).flatten(1)

    def feature_query(self, token: Tensor) -> Tensor:
        """K^T Q t / c, the query as the features see it: `(batch, heads, channel)`."""
        query: Tensor = self.query(token).unflatten(1, (self.num_heads, self.attention_width))
        seen: Tensor = torch.einsum("bha,hac->bhc", query, self.key)
        return seen / self.divisor

    def weights(self, token: Tensor, features: Tensor, axes: Sequence[Axis]) -> Tensor:
        """Attention weights alpha of every cell, `(batch, heads, *space)`; they sum to one over space."""
        scores: Tensor = torch.einsum("bhc,cb...->bh...", self.feature_query(token), features)
        logits = volume_logits(axes, features)
        flat = scores.flatten(2) if logits is None else scores.flatten(2) + logits
        weights: Tensor = flat.softmax(-1)
        return weights.view(scores.shape)


def volume_logits(axes: Sequence[Axis], like: Tensor) -> Tensor | None:
    """Logarithm of each cell's volume, `(cells,)`; None where all are equal, for softmax does not see them."""
    if all(axis.uniform for axis in axes):
        return None
    total = torch.zeros((), dtype=torch.float64)
    for axis in axes:
        total = total[..., None] + axis.weights.log()
    return total.flatten().to(like.dtype).to(like.device)


def attention_pool(
    features: Float[Tensor, "channel batch *space"],
    query: Float[Tensor, "batch heads channel"],
    logits: Float[Tensor, " cells"] | None,
) -> Float[Tensor, "batch heads channel"]:
    """sum_y alpha(y) f(y) for every head: features `(channel, batch, *space)`, query `(batch, heads, channel)`."""
    pooled: Tensor = _AttentionPool.apply(features.flatten(2), query, logits)[0]  # type: ignore[no-untyped-call]
    return pooled


class _AttentionPool(torch.autograd.Function):
    """Softmax attention whose keys and values are the features: the gradient is one product of rank 2 heads."""

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, query: Tensor, logits: Tensor | None) -> tuple[Tensor, Tensor]:
        weights = _softmax_weights(features, query, logits)
        return torch.bmm(weights, features.permute(1, 2, 0)), weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        features, query, logits = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(features, query, logits, output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        pooled = gradients[0]
        features, query, logits, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody differentiates this gradient, and the weights depend on its inputs
            weights = _softmax_weights(features, query, logits)
        by_sample = features.transpose(0, 1)
        change = torch.bmm(pooled, by_sample)
        scores = weights * (change - (weights * change).sum(-1, keepdim=True))
        left = torch.cat([pooled, query], dim=1).transpose(1, 2)
        gradient = torch.bmm(left, torch.cat([weights, scores], dim=1)).transpose(0, 1)
        return gradient, torch.bmm(scores, by_sample.transpose(1, 2)), None


def _softmax_weights(features: Tensor, query: Tensor, logits: Tensor | None) -> Tensor:
    scores = torch.bmm(query, features.transpose(0, 1))
    return (scores if logits is None else scores + logits).softmax(-1)
