"""The global modulation layer: attention of one query, made from the token, over the whole field.

    A = sum_y alpha(y) V f(y),     alpha(y) = w_y exp(s_y) / sum_z w_z exp(s_z),     s_y = <Q t, K f(y)> / d_a

with w_y the volume of cell y, so that the sum is a quadrature of the integral and does not depend on the grid.
Keys and values are never formed: <Q t, K f> = <K^T Q t, f>, and V is applied after the sum.
Shapes: features `(channel, batch, *space)`, token `(batch, token_width)`, A `(batch, attention_width)`; the axis of
queries has length one.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, over_parts
from spectrakan.nn.embedding import cell_shares
from spectrakan.nn.execution import Field, differentiable, force_fp32, plain_forms


class GlobalModulation(nn.Module):
    """Single-query attention over all cells; see the file's equation."""

    def __init__(self, width: int, token_width: int, attention_width: int) -> None:
        super().__init__()
        # The paper divides by d_a in one equation and by its root in others; by d_a rollouts came out better.
        self.divisor = float(attention_width)
        self.query = nn.Linear(token_width, attention_width)
        # A bias on the keys would add the same number to all scores, which softmax ignores.
        self.key = nn.Parameter(torch.randn(1, attention_width, width) * width**-0.5)
        self.value = nn.Parameter(torch.randn(1, attention_width, width) * width**-0.5)

    @force_fp32
    def forward(
        self, token: Float[Tensor, "batch token"], features: Field, axes: Sequence[Axis]
    ) -> Float[Tensor, "batch values"]:
        """The value A of the file's equation."""
        given, cells = self.feature_query(token), features.flatten(2).permute(1, 2, 0)
        fused = torch.is_grad_enabled() and not plain_forms() and all(axis.space is None for axis in axes)
        pooled = _Pool.apply(given, cells, axes) if fused else pool(given, cells, axes)  # type: ignore[no-untyped-call]
        return torch.einsum("bqc,qvc->bqv", pooled, self.value).flatten(1)

    def feature_query(self, token: Tensor) -> Tensor:
        """K^T Q t / d_a, the query in the space of the features: `(batch, 1, channel)`."""
        mapped: Tensor = torch.einsum("ba,qac->bqc", self.query(token), self.key)
        return mapped / self.divisor

    def weights(self, token: Tensor, features: Tensor, axes: Sequence[Axis]) -> Tensor:
        """Attention weights alpha of every cell, `(batch, 1, *space)`; they sum to one over space."""
        scores: Tensor = torch.einsum("bqc,cb...->bq...", self.feature_query(token), features)
        return cell_softmax(scores.flatten(2), axes).view(scores.shape)


def pool(query: Tensor, cells: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The mean of `cells` `(batch, cell, channel)` by the attention of `query` `(batch, 1, channel)`."""
    return over_parts(torch.bmm(cell_softmax(torch.bmm(query, cells.mT), axes), cells), axes)


class _Pool(torch.autograd.Function):
    """`pool` with both parts of the gradient of the cells, by weights and by scores, in one product."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, cells: Tensor, axes: Sequence[Axis]) -> Tensor:
        weights = cell_softmax(torch.bmm(query, cells.mT), axes)
        ctx.axes = axes
        ctx.save_for_backward(query, cells, weights)
        return torch.bmm(weights, cells)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, cells, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # of second order
            return differentiable(pool, gradients[0], query, cells, ctx.axes)
        slopes = torch.bmm(gradients[0], cells.mT)
        scores = weights * (slopes - (weights * slopes).sum(-1, keepdim=True))
        by_cells = torch.bmm(torch.cat([weights, scores], dim=1).mT, torch.cat([gradients[0], query], dim=1))
        return torch.bmm(scores, cells), by_cells, None


def cell_softmax(scores: Float[Tensor, "batch queries cells"], axes: Sequence[Axis]) -> Tensor:
    """Weights alpha of all cells, those of other processes included where an axis is cut."""
    if not all(axis.uniform for axis in axes):  # softmax ignores a volume that all cells share
        shares = cell_shares(axes, torch.zeros((), dtype=torch.float64))
        scores = scores + shares.log().to(scores.dtype).to(scores.device)
    for axis in axes:
        if axis.space is not None:
            powers = (scores - axis.space.largest(scores.amax(-1, keepdim=True))).exp()
            return powers / axis.summed(powers.sum(-1, keepdim=True))
    return scores.softmax(-1)
