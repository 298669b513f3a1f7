"""The global token: a few numbers that describe the state of the whole system.

    z = P(u) in R^{d_0},     t = Phi(z) in R^{token_width},     Phi a Kolmogorov-Arnold network (G-KAN).

P takes the history of the field at the centre of the domain, its mean, or centre, mean and standard deviation;
physical parameters are appended. Shapes: history `(batch, history, *space, field)`, params `(batch, params)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Unpack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, kept, mean_over, over_parts
from spectrakan.nn.kan import KAN, SplineOptions

Pool = Literal["center", "mean", "center+mean+std"]
TokenKind = Literal["kan", "mlp", "raw", "none"]
POOLED: dict[str, int] = {"center": 1, "mean": 1, "center+mean+std": 3}
"""Numbers that each way of pooling takes from one channel."""


class GlobalToken(nn.Module):
    """From history and parameters to the token of `width` numbers, by a network with one hidden layer of that width.

    `kind` is the network on the pooled numbers: a KAN (the paper) with `splines`, an MLP, or none (`raw`).
    """

    def __init__(
        self,
        num_channels: int,
        num_params: int,
        *,
        kind: TokenKind = "kan",
        pool: Pool = "center",
        width: int = 32,
        **splines: Unpack[SplineOptions],
    ) -> None:
        super().__init__()
        self.pool = pool
        inputs = POOLED[pool] * num_channels + num_params
        self.width = inputs if kind == "raw" else width
        self.network: nn.Module
        if kind == "kan":
            splines.setdefault("grid_range", (-3.0, 3.0))  # of fields at unit scale, until `fit_grid`
            self.network = KAN([inputs, width, width], **splines)
        elif kind == "mlp":
            self.network = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width))
        else:
            self.network = nn.Identity()

    def forward(
        self,
        history: Float[Tensor, "batch history *space field"],
        params: Float[Tensor, "batch params"] | None,
        axes: Sequence[Axis],
    ) -> Float[Tensor, "batch token"]:
        """The token, `(batch, width)`."""
        token: Tensor = self.network(self.summary(history, params, axes))
        return token

    def summary(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The summary z = P(u) with the parameters behind it, `(batch, d_0)`."""
        parts = {
            "center": [centre_value],
            "mean": [space_mean],
            "center+mean+std": [centre_value, space_mean, space_spread],
        }[self.pool]
        pooled = [part(history, axes).flatten(1) for part in parts]
        return torch.cat(pooled if params is None else [*pooled, params], dim=1)

    def gain(self, axes: Sequence[Axis]) -> float:
        """Bound of the change of a pooled number over the largest change of the field: sum of absolute weights."""
        if self.pool == "mean":
            return 1.0
        like = torch.zeros((), dtype=torch.float64)
        return math.prod(float(_centre_stencil(axis, like)[1].abs().sum()) for axis in axes)

    @torch.no_grad()
    def fit_grid(self, summaries: Tensor) -> None:
        """Fit the splines' grids to summaries of training data `(samples, d_0)`; other networks have no grid."""
        if isinstance(self.network, KAN):
            self.network.fit_grid(summaries)


def centre_value(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The field at the centre of the domain, `(batch, history, field)`.

    Along each axis a cubic through the 4 cells around the centre: the same point at every size and grading, with an
    error of order 4 in the cell width.
    """
    for axis in axes:
        cells, weights = _centre_stencil(axis, history)
        history = torch.tensordot(history.index_select(2, cells), weights, dims=([2], [0]))
    return over_parts(history, axes)


@kept
def _centre_stencil(axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    """The 4 cells around the centre of an axis, and the weights of their cubic there (Lagrange).

    Of an axis that is cut among processes, those of the 4 that this process holds.
    """
    # Tensors, not numbers: a traced program must not be tied to one size.
    centres = axis.centres if axis.whole is None else axis.whole.centres
    below = (centres < 0.5).sum(0, keepdim=True)
    cells = (below - 2).clamp(0, axis.total - 4) + torch.arange(4)
    nodes = centres[cells]
    others = ~torch.eye(4, dtype=torch.bool)
    ratios = (0.5 - nodes)[None, :] / torch.where(others, nodes[:, None] - nodes[None, :], 1.0)
    weights = torch.where(others, ratios, 1.0).prod(1)
    if axis.whole is not None:
        held = (cells >= axis.start) & (cells < axis.start + axis.cells)
        cells, weights = cells[held] - axis.start, weights[held]
    return cells.to(like.device), weights.to(like.dtype).to(like.device)


def space_mean(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The mean over the domain by cell volumes, `(batch, history, field)`."""
    return mean_over(history.movedim(-1, 2), axes)


def space_spread(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The standard deviation over the domain, above zero so that its gradient is finite everywhere."""
    mean = space_mean(history, axes)
    for _ in axes:
        mean = mean.unsqueeze(2)
    return (space_mean((history - mean).square(), axes) + 1e-6).sqrt()
