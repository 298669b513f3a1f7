"""Squeeze-excitation: channels are scaled by what the whole field says of them.

s_c = mean over space of v_c,     a = sigmoid(W_2 relu(W_1 s + b_1) + b_2),     v_c -> a_c v_c
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class SqueezeExcite(nn.Module):
    """The scale a of every channel from its mean over space; `start` is its value before training.

    The paper has no biases, so its fresh gate halves every layer (`start=0.5`); b_2 = logit(start) mends that.
    """

    def __init__(self, width: int, *, reduction: int = 4, start: float = 0.9) -> None:
        super().__init__()
        narrow = max(8, width // reduction)
        self.squeeze = nn.Linear(width, narrow)
        self.excite = nn.Linear(narrow, width)
        with torch.no_grad():
            self.excite.bias.fill_(math.log(start / (1 - start)))

    def forward(self, mean: Float[Tensor, "batch channel"]) -> Float[Tensor, "batch channel"]:
        """Means over space `(batch, channel)` to scales in (0, 1) of the same shape."""
        return torch.sigmoid(self.excite(F.relu(self.squeeze(mean))))
