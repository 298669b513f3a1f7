"""The pointwise readout R([f, A]): what the features and the global value say in each cell.

    u(x) = W_2 gelu(W_1 f(x) + W_A A + b_1) + b_2

A is the same in all cells, so its part of the first product is one vector a sample, added by broadcasting.
Shapes: features `(channel, batch, *space)`, A `(batch, values)`, out `(out, batch, *space)`.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.activation import activate
from spectrakan.nn.embedding import pointwise


class Readout(nn.Module):
    """See the file's equation; without a global value (`global_width=0`) the W_A term is not there."""

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
            hidden = pointwise(self.local.weight, self.local.bias, features)
        else:
            # The vector of a sample goes in with the bias, as one addition in place.
            shift = (self.broadcast(value) + self.local.bias).T
            hidden = pointwise(self.local.weight, None, features)
            hidden = hidden.add_(shift.view(*shift.shape, *[1] * (features.ndim - 2)))
        return pointwise(self.out.weight, self.out.bias, activate("gelu", hidden))


def add_everywhere(features: Tensor, value: Tensor) -> Tensor:
    """f(x) + A, the paper's other form of fusion: `(channel, batch, *space)` plus `(batch, channel)`."""
    shift = value.T
    return features + shift.view(*shift.shape, *[1] * (features.ndim - 2))
