"""The lift: a linear map of the input channels in every cell, which trusts old frames less than new ones.

    v = W [u; x] + b,     W = V diag(q^age, I)

The last frame of a history has age 0. With q < 1 the free weights V have to grow before the map leans on the past,
which helps where the past foretells little; where a field creeps, its increments are half of the answer, and q is
near 1. The maps that can be learnt are the same for every q.
Shapes: fields `(channel, batch, *space)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Lift(nn.Module):
    """W and b of the file's equation; `trust` has q^age of each channel, 1 for those without an age."""

    trust: Tensor

    def __init__(self, trust: Sequence[float], width: int) -> None:
        super().__init__()
        learnt = nn.Linear(len(trust), width)
        self.free, self.bias = learnt.weight, learnt.bias
        self.register_buffer("trust", torch.tensor(trust, dtype=torch.get_default_dtype()))

    @property
    def weight(self) -> Float[Tensor, "width channels"]:
        """W, which acts on the channels as they come."""
        return self.free * self.trust


def trust_by_age(history: int, fields: int, others: int, decay: float) -> list[float]:
    """q^age for frames from the oldest to the last, each with all its fields, and 1 for the other channels.

    >>> trust_by_age(history=3, fields=2, others=1, decay=0.5)
    [0.25, 0.25, 0.5, 0.5, 1.0, 1.0, 1.0]
    """
    frames = [decay**age for age in reversed(range(history)) for _ in range(fields)]
    return frames + [1.0] * others
