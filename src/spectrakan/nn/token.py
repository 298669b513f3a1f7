"""The global token: a few numbers that say in which state the whole system is.

    z = P(u) in R^{d_0},     t = Phi(z) in R^{token_width},     Phi a Kolmogorov-Arnold network (G-KAN).

P looks at the history of the field at the centre of the domain, at its mean, or at centre, mean and spread;
physical parameters are appended. Shapes: history `(batch, history, *space, field)`, params `(batch, params)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.config import settings
from spectrakan.nn.axis import Axis
from spectrakan.nn.kan import KAN, Extension
from spectrakan.numerics.quadrature import weighted_mean

Pool = Literal["center", "mean", "center+mean+std"]
TokenKind = Literal["kan", "mlp", "raw", "none"]
POOLED: dict[str, int] = {"center": 1, "mean": 1, "center+mean+std": 3}
"""Numbers that each way of pooling takes from one channel."""


@settings
class TokenSettings:
    """How the token is made."""

    kind: TokenKind = "kan"
    """Network on the pooled numbers: a KAN (the paper), an MLP, or nothing (the numbers themselves)."""
    pool: Pool = "center"
    """What is taken from the field: its value at the centre, its mean, or both and the spread."""
    width: int = 32
    """Numbers in the token (C_kan in the paper)."""
    hidden: int = 32
    """Width of the hidden layer of the KAN or MLP."""
    spline_order: int = 3
    """Order k of the splines."""
    num_intervals: int = 5
    """Number G of knot intervals."""
    extension: Extension = "linear"
    """How splines go on beyond their grid."""


class GlobalToken(nn.Module):
    """From history and parameters to the token."""

    def __init__(self, num_channels: int, num_params: int, choices: TokenSettings) -> None:
        super().__init__()
        self.pool = choices.pool
        inputs = POOLED[choices.pool] * num_channels + num_params
        self.width = inputs if choices.kind == "raw" else choices.width
        self.network: nn.Module
        if choices.kind == "kan":
            self.network = KAN(
                [inputs, choices.hidden, choices.width],
                spline_order=choices.spline_order,
                num_intervals=choices.num_intervals,
                extension=choices.extension,
                grid_range=(-3.0, 3.0),  # fields come at unit scale; `fit_grid` knows better
            )
        elif choices.kind == "mlp":
            self.network = nn.Sequential(
                nn.Linear(inputs, choices.hidden), nn.SiLU(), nn.Linear(choices.hidden, choices.width)
            )
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

    @torch.no_grad()
    def fit_grid(self, summaries: Tensor) -> None:
        """Fit the splines' grids to summaries of training data `(samples, d_0)`; other networks have none."""
        if isinstance(self.network, KAN):
            self.network.fit_grid(summaries)


def centre_value(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The field at the centre of the domain, `(batch, history, field)`.

    Along each axis the mean of cells floor((n-1)/2) and floor(n/2): one cell or the two beside the centre,
    the same point at every size.
    """
    for _ in axes:
        cells = history.shape[2]
        # Places as tensors: an index that depends on a symbolic size would tie an exported program to some sizes.
        beside = [torch.full((1,), place, device=history.device) for place in ((cells - 1) // 2, cells // 2)]
        history = history.index_select(2, torch.cat(beside)).mean(2)
    return history


def space_mean(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The mean over the domain by cell volumes, `(batch, history, field)`."""
    weights = [axis.weights.to(history.dtype).to(history.device) for axis in axes]
    return weighted_mean(history.movedim(-1, 2), weights)


def space_spread(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The standard deviation over the domain, kept off zero so that its gradient is finite everywhere."""
    mean = space_mean(history, axes)
    for _ in axes:
        mean = mean.unsqueeze(2)
    return (space_mean((history - mean).square(), axes) + 1e-6).sqrt()
