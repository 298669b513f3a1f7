"""A field cut into patches, each made a token by one linear map, with the patch's place added.

    token_j = W vec(u on patch j) + b + e(place of j)
The field must be a whole number of patches in each axis; e has fixed sines and cosines of the patch's number
along each axis. Shapes: `(batch, frames, *space, field)` -> `(batch, frames, patches, width)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.errors import ShapeError
from spectrakan.numerics.radial import sincos_positions


class Patches(nn.Module):
    """See the file's equation."""

    places: Tensor

    def __init__(self, counts: Sequence[int], patch: int, in_channels: int, width: int) -> None:
        super().__init__()
        self.counts, self.patch = tuple(counts), patch
        self.embed = nn.Linear(in_channels * patch ** len(self.counts), width)
        self.register_buffer("places", patch_places(self.counts, width), persistent=False)

    def forward(
        self, frames: Float[Tensor, "batch frames *space field"]
    ) -> Float[Tensor, "batch frames patches width"]:
        """Tokens of each frame."""
        wanted = tuple(count * self.patch for count in self.counts)
        if tuple(frames.shape[2:-1]) != wanted:
            raise ShapeError(f"patches need a field of {wanted} cells, got {tuple(frames.shape[2:-1])}")
        tokens: Tensor = self.embed(cut(frames, self.patch)) + self.places
        return tokens


def cut(frames: Tensor, patch: int) -> Tensor:
    """`(batch, frames, *space, field)` -> `(batch, frames, patches, patch^axes * field)`."""
    dims = frames.ndim - 3
    for axis in reversed(range(2, 2 + dims)):
        frames = frames.unflatten(axis, (-1, patch))
    # Now (batch, frames, n_1, p, n_2, p, .., field): numbers of patches first, cells inside them last.
    order = [0, 1, *(2 + 2 * a for a in range(dims)), *(3 + 2 * a for a in range(dims)), 2 + 2 * dims]
    return frames.permute(order).flatten(2 + dims).flatten(2, 1 + dims)


def patch_places(counts: Sequence[int], width: int) -> Float[Tensor, "patches width"]:
    """Sines and cosines of each patch's number along each axis, side by side, `(patches, width)`."""
    shares = [width // len(counts) + (axis < width % len(counts)) for axis in range(len(counts))]
    numbers = torch.meshgrid(*[torch.arange(count, dtype=torch.float64) for count in counts], indexing="ij")
    parts = [sincos_positions(number.flatten(), share) for number, share in zip(numbers, shares, strict=True)]
    return torch.cat(parts, dim=1).to(torch.get_default_dtype())
