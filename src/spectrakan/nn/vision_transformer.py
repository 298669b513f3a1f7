"""Parts of a vision transformer on fields: patches as tokens, attention blocks, and queries at any coordinates.

    patches     token_j = W vec(u on patch j) + b + e(position of j),    e fixed sines and cosines along each axis
    attention   x = x + W_o [softmax(q_h k_h^T / sqrt(d_head)) v_h]_h,    q from LN(x), k and v from LN(context)
                x = x + W_2 gelu(W_1 LN(x) + b_1) + b_2
    latents     e(x) = LN(W sum_c w_c(x) z_c + b),    w_c(x) = softmax_c(-sharpness |x - c|^2),    c on a lattice

Without a context tokens attend to each other. On a lattice |x - c|^2 is a sum over axes, so the weights are products:
one small matrix an axis instead of one weight for each pair of position and lattice point.
Shapes: frames `(batch, frames, *space, field)`, tokens `(batch, [frames,] tokens, width)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.nn.axis import Axis, uniform_axis
from spectrakan.nn.embedding import cell_coordinates
from spectrakan.numerics.radial import gaussian_weights, sincos_positions
from spectrakan.numerics.resample import along_axis

START_CYCLES = 0.7
"""Standard deviation of the latents' frequencies before training, in cycles over the domain."""


class AttentionBlock(nn.Module):
    """See the file's equations; `cross=True` for a block with a context.

    An x of batch 1 is the query for the contexts of all samples.
    """

    def __init__(self, width: int, num_heads: int, *, mlp_ratio: int = 1, cross: bool = False) -> None:
        super().__init__()
        if width % num_heads:
            raise ConfigError(f"an attention width must be a multiple of its heads, got {width} and {num_heads}")
        self.num_heads = num_heads
        self.norm = nn.LayerNorm(width)
        self.context_norm = nn.LayerNorm(width) if cross else None
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, mlp_ratio * width), nn.GELU(), nn.Linear(mlp_ratio * width, width))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Attention of the tokens x to the context, or to each other."""
        normed = self.norm(x)
        context = normed if self.context_norm is None or context is None else self.context_norm(context)
        query = self._heads(self.query(normed)).expand(context.shape[0], -1, -1, -1)
        key, value = (self._heads(part) for part in self.key_value(context).chunk(2, dim=-1))
        attended = F.scaled_dot_product_attention(query, key, value)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        changed: Tensor = x + self.feed(self.feed_norm(x))
        return changed

    def _heads(self, rows: Tensor) -> Tensor:
        heads: Tensor = rows.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        return heads


class Patches(nn.Module):
    """A field of a whole number of patches along each axis to one token a patch."""

    positions: Tensor

    def __init__(self, counts: Sequence[int], patch: int, in_channels: int, width: int) -> None:
        super().__init__()
        self.counts, self.patch = tuple(counts), patch
        self.embed = nn.Linear(in_channels * patch ** len(self.counts), width)
        self.register_buffer("positions", patch_positions(self.counts, width), persistent=False)

    def forward(
        self, frames: Float[Tensor, "batch frames *space field"]
    ) -> Float[Tensor, "batch frames patches width"]:
        """Tokens of each frame."""
        expected = tuple(count * self.patch for count in self.counts)
        if tuple(frames.shape[2:-1]) != expected:
            raise ShapeError(f"patches need a field of {expected} cells, got {tuple(frames.shape[2:-1])}")
        tokens: Tensor = self.embed(cut(frames, self.patch)) + self.positions
        return tokens


def cut(frames: Tensor, patch: int) -> Tensor:
    """`(batch, frames, *space, field)` -> `(batch, frames, patches, patch^axes * field)`."""
    dims = frames.ndim - 3
    for axis in reversed(range(2, 2 + dims)):
        frames = frames.unflatten(axis, (-1, patch))
    # Now (batch, frames, n_1, p, n_2, p, .., field): numbers of patches first, cells inside them last.
    order = [0, 1, *(2 + 2 * a for a in range(dims)), *(3 + 2 * a for a in range(dims)), 2 + 2 * dims]
    return frames.permute(order).flatten(2 + dims).flatten(2, 1 + dims)


def patch_positions(counts: Sequence[int], width: int) -> Float[Tensor, "patches width"]:
    """Sines and cosines of each patch's number along each axis, side by side, `(patches, width)`."""
    shares = [width // len(counts) + (axis < width % len(counts)) for axis in range(len(counts))]
    numbers = torch.meshgrid(*[torch.arange(count, dtype=torch.float64) for count in counts], indexing="ij")
    parts = [sincos_positions(number.flatten(), share) for number, share in zip(numbers, shares, strict=True)]
    return torch.cat(parts, dim=1).to(torch.get_default_dtype())


class LatentGrid(nn.Module):
    """Learned vectors on a lattice, read at any position; they start as waves of random low frequencies."""

    def __init__(self, counts: Sequence[int], latent_width: int, width: int, sharpness: float) -> None:
        super().__init__()
        self.sharpness = sharpness
        self.latents = nn.Parameter(smooth_latents(counts, latent_width))
        self.embed = nn.Linear(latent_width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, axes: Sequence[Axis]) -> Tensor:
        """One vector for each cell of the grid with these axes, `(cells, width)`."""
        embedded: Tensor = self.norm(self.embed(self.interpolate(axes).flatten(0, -2)))
        return embedded

    def interpolate(self, axes: Sequence[Axis]) -> Tensor:
        """The latents at the cell centres, `(*space, latent_width)`."""
        values: Tensor = self.latents
        for dim, axis in enumerate(axes):
            lattice = uniform_axis(self.latents.shape[dim], periodic=False)
            weights = gaussian_weights(axis.centres, lattice.centres, self.sharpness)
            values = along_axis(weights.to(values), values, dim)
        return values


def smooth_latents(counts: Sequence[int], latent_width: int) -> Tensor:
    """sqrt(2) cos(2 pi (f . c + phase)) at the lattice points c, f and phase drawn for each latent channel."""
    like = torch.zeros(())
    lattice = cell_coordinates([uniform_axis(count, False) for count in counts], like)
    angle = lattice @ (START_CYCLES * torch.randn(len(counts), latent_width)) + torch.rand(latent_width)
    return (2**0.5 * torch.cos(2 * math.pi * angle)).view(*counts, latent_width)
