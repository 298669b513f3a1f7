"""Physical units to unit scale and back, per channel, and the moments that fit them."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from spectrakan.errors import DataFormatError, ShapeError
from spectrakan.fields import SpaceGroup
from spectrakan.numerics.quadrature import to_float64


class Normalizer(nn.Module):
    """The map v -> (v - mean) / scale on the last axis.

    It is the identity until `set` or `fit`; its numbers are buffers, so they are saved with a model's weights.

    >>> units = Normalizer(1)
    >>> units.set(mean=torch.tensor([273.0]), scale=torch.tensor([10.0]))
    >>> units.normalize(torch.tensor([293.0]))
    tensor([2.])
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, num_channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_channels))
        self.register_buffer("scale", torch.ones(num_channels))

    @torch.no_grad()
    def set(self, mean: Tensor, scale: Tensor) -> None:
        """Fix the units: `(channels,)` each; the scale must be positive."""
        expected = self.mean.shape
        for name, value in {"mean": mean, "scale": scale}.items():
            if value.shape != expected:
                raise ShapeError(f"{name} must have one entry for each of {expected[0]} channels, got {value.shape}")
        mean, scale = mean.to(self.mean), scale.to(self.scale)
        if not bool((scale > 0).all()) or not bool(torch.isfinite(mean).all() & torch.isfinite(scale).all()):
            raise ShapeError(f"mean must be finite and scale positive and finite, got {mean} and {scale}")
        self.mean.copy_(mean)
        self.scale.copy_(scale)

    def fit(self, pieces: Iterable[Tensor], space: SpaceGroup | None = None) -> None:
        """Set the units to mean and standard deviation of all rows of `(..., channels)` pieces, of all parts.

        A channel that does not vary beyond the rounding of its type gets scale 1: it becomes zero and comes back
        exactly.
        """
        moments = RunningMoments(self.mean.shape[0])
        for piece in pieces:
            moments.add(piece)
        if space is not None:
            moments.merge(space)
        self.set(moments.mean, moments.scale())

    def normalize(self, values: Tensor) -> Tensor:
        """Physical `(..., channels)` to unit scale."""
        return (values - self.mean) / self.scale

    def denormalize(self, values: Tensor) -> Tensor:
        """Unit scale `(..., channels)` back to physical units; the inverse of `normalize`."""
        return values * self.scale + self.mean


class RunningMoments:
    """Mean and variance of rows that arrive in pieces, in float64 (Chan, Golub and LeVeque 1979).

    Values are taken relative to the first row, so a constant channel has a deviation of exactly zero and a small
    variation on a large mean keeps its digits.
    """

    def __init__(self, num_channels: int) -> None:
        self.count, self.precision = 0, 0.0
        self.origin, self.shifted_mean, self.squares = torch.zeros(3, num_channels, dtype=torch.float64)

    def add(self, values: Tensor) -> None:
        """Take in `(..., channels)`; a NaN or an infinity raises `DataFormatError`."""
        rows = to_float64(values).reshape(-1, values.shape[-1]).cpu()
        if not rows.numel():
            return
        if not bool(torch.isfinite(rows).all()):
            channel = int((~torch.isfinite(rows)).any(0).nonzero()[0])
            raise DataFormatError(f"channel {channel} has NaN or infinite values; `spectrakan check` tells where")
        if self.count == 0:
            self.origin = rows[0].clone()
        if values.is_floating_point():
            self.precision = max(self.precision, torch.finfo(values.dtype).eps)
        rows = rows - self.origin
        mean = rows.mean(0)
        self._join(len(rows), mean, (rows - mean).square().sum(0))

    def merge(self, space: SpaceGroup) -> None:
        """Take in the rows of all processes that hold parts of the same fields."""
        count = torch.full_like(self.mean, self.count)
        parts = space.each(torch.stack([count, self.mean, self.squares]))
        self.count, self.origin = 0, parts[0][1].clone()
        self.shifted_mean, self.squares = torch.zeros(2, len(self.origin), dtype=torch.float64)
        for count, mean, squares in parts:
            self._join(int(count[0]), mean - self.origin, squares)

    def _join(self, count: int, mean: Tensor, squares: Tensor) -> None:
        """Take in rows by their number, mean and squared departures from it."""
        total, apart = self.count + count, mean - self.shifted_mean
        self.squares = self.squares + squares + apart.square() * (self.count * count / total)
        self.shifted_mean = self.shifted_mean + apart * (count / total)
        self.count = total

    @property
    def mean(self) -> Tensor:
        """Mean of each channel."""
        mean: Tensor = self.origin + self.shifted_mean
        return mean

    def scale(self) -> Tensor:
        """Standard deviation of each channel; 1 where it does not exceed the rounding of the values' type."""
        spread = (self.squares / max(self.count, 1)).sqrt()
        floor = 4 * self.precision * self.mean.abs().clamp_min(torch.finfo(torch.float64).tiny)
        return torch.where(spread <= floor, 1.0, spread)
