"""The pointwise readout R([f, A]): features and the global value to the output fields, cell by cell.

    u(x) = W_2 gelu(W_1 f(x) + W_A A + b_1) + b_2

A is the same in all cells, so its part of the first product is one vector a sample, added by broadcasting.
Shapes: features `(channel, batch, *space)`, A `(batch, values)`, out `(out, batch, *space)`.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.pointwise import activate, pointwise


class Readout(nn.Module):
    """See the file's equation; without a global value (`global_width=0`) there is no W_A term."""

    def __init__(self, width: int, global_width: int, hidden: int, out_channels: int) -> None:
        super().__init__()
        self.local = nn.Linear(width, hidden)
        self.broadcast = nn.Linear(global_width, hidden, bias=False) if global_width else None
        self.out = nn.Linear(hidden, out_channels)

    def forward(
        self, features: Float[Tensor, "channel batch *space"], value: Float[Tensor, "batch values"] | None
    ) -> Float[Tensor, "out batch *space"]:
        """Features and the global value to the output fields."""
        if self.broadcast is None or value is None:
            hidden = activate("gelu", pointwise(self.local.weight, self.local.bias, features))
        else:
            # The vector of a sample is added together with the bias.
            shift = (self.broadcast(value) + self.local.bias).T
            local = pointwise(self.local.weight, None, features)
            hidden = activate("gelu", local + shift.view(*shift.shape, *[1] * (features.ndim - 2)))
        return pointwise(self.out.weight, self.out.bias, hidden)
