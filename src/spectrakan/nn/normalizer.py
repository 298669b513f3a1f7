"""Physical units to unit scale and back, per channel."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spectrakan.errors import ShapeError


class Normalizer(nn.Module):
    """The map v -> (T(v) - mean) / scale on the last axis, T = log for channels so marked, else identity.

    It is the identity until `set` is called; its numbers are buffers, so they travel with a model's weights.

    >>> units = Normalizer(1)
    >>> units.set(mean=torch.tensor([273.0]), scale=torch.tensor([10.0]))
    >>> units.normalize(torch.tensor([293.0]))
    tensor([2.])
    """

    mean: Tensor
    scale: Tensor
    logarithmic: Tensor

    def __init__(self, num_channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_channels))
        self.register_buffer("scale", torch.ones(num_channels))
        self.register_buffer("logarithmic", torch.zeros(num_channels, dtype=torch.bool))

    @torch.no_grad()
    def set(self, mean: Tensor, scale: Tensor, logarithmic: Tensor | None = None) -> None:
        """Fix the units: `(channels,)` each; the scale must be positive."""
        expected = self.mean.shape
        for name, value in {"mean": mean, "scale": scale, "logarithmic": logarithmic}.items():
            if value is not None and value.shape != expected:
                raise ShapeError(f"{name} must have one entry for each of {expected[0]} channels, got {value.shape}")
        if not bool((scale > 0).all()) or not bool(torch.isfinite(mean).all() & torch.isfinite(scale).all()):
            raise ShapeError(f"mean must be finite and scale positive and finite, got {mean} and {scale}")
        self.mean.copy_(mean)
        self.scale.copy_(scale)
        if logarithmic is not None:
            self.logarithmic.copy_(logarithmic)

    def normalize(self, values: Tensor) -> Tensor:
        """Physical `(..., channels)` to unit scale."""
        # Both branches of `where` are evaluated, so the logarithm gets a harmless 1 where it is not wanted.
        positive = torch.where(self.logarithmic, values.clamp_min(torch.finfo(values.dtype).tiny), 1.0)
        return (torch.where(self.logarithmic, positive.log(), values) - self.mean) / self.scale

    def denormalize(self, values: Tensor) -> Tensor:
        """Unit scale `(..., channels)` back to physical units; the exact inverse of `normalize`."""
        physical = values * self.scale + self.mean
        exponent = torch.where(self.logarithmic, physical, 0.0)
        return torch.where(self.logarithmic, exponent.exp(), physical)
