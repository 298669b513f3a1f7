"""The lift: a linear map of the input channels in every cell, learnt in units that suit the history of the field.

    v = W [u; x] + b,     W = V diag(M, I)

Frames that follow each other are almost equal, so that what tells them apart, the motion, is a tiny part of each
channel, and gradient descent finds it last. M (fitted once to training data) turns the channels into their principal
components, each at unit spread: V learns from all of them at the same pace. The maps that can be learnt are the same.
Components with a spread below `floor` are amplified by 1 / `floor` only: in a rollout they hold the model's own
errors.
Shapes: fields `(channel, batch, *space)`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Lift(nn.Module):
    """W and b of the file's equation; M is the identity until `fit`."""

    units: Tensor

    def __init__(self, num_channels: int, num_coordinates: int, width: int) -> None:
        super().__init__()
        learnt = nn.Linear(num_channels + num_coordinates, width)
        self.free, self.bias = learnt.weight, learnt.bias
        self.register_buffer("units", torch.eye(num_channels))

    @property
    def weight(self) -> Float[Tensor, "width channels"]:
        """W, which acts on the channels as they come."""
        channels = len(self.units)
        return torch.cat([self.free[:, :channels] @ self.units, self.free[:, channels:]], dim=1)

    @torch.no_grad()
    def fit(self, covariance: Float[Tensor, "channels channels"], floor: float) -> None:
        """Take the principal components of channels with this covariance as the units of the free weights."""
        spreads, components = torch.linalg.eigh(covariance.double())
        spreads = spreads.clamp_min(0).sqrt().clamp_min(floor)
        self.units.copy_((components / spreads).T)
