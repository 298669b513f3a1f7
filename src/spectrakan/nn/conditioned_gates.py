"""Gates that depend on the input: the token turns the spectral layers' frequencies up and down.

    gamma(k; t) = gamma(k) (1 + tanh(W t + b)_k / 2)

The factor stays in (1/2, 3/2) and its slope is bounded, for free gates fit better and explode in rollouts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ConditionedGates(nn.Module):
    """Factors for every gate of every layer and axis; all one before training."""

    def __init__(self, token_width: int, modes: Sequence[Sequence[int]]) -> None:
        """`modes[layer][axis]`: how many gates there are."""
        super().__init__()
        self.modes = [list(layer) for layer in modes]
        self.map = nn.Linear(token_width, sum(map(sum, self.modes)))
        nn.init.zeros_(self.map.weight)
        nn.init.zeros_(self.map.bias)

    def forward(self, token: Tensor) -> list[list[Tensor]]:
        """Token `(batch, token_width)` to factors `[layer][axis]` of `(batch, modes)`."""
        factors = iter(torch.split(1 + self.map(token).tanh() / 2, [n for layer in self.modes for n in layer], dim=1))
        return [[next(factors) for _ in layer] for layer in self.modes]
