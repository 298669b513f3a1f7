"""CViT: a vision transformer encodes the history, queries at coordinates decode it.

encoder   tokens = patches of each frame + fixed embeddings of position and time; a learned latent at each position
          attends to its tokens over time (`time_depth` blocks, then LN); `num_layers` self-attention blocks and LN
decoder   e(x) = latents on a lattice, interpolated with Gaussian weights; e(x) attends to the encoder's tokens in
          `decoder_layers` cross-attention blocks
u_next(x) = W LN(y + gelu(W_1 y + b_1)) + b,     y = LN(decoder(x))

Wang, Seidman, Sankaran, Wang, Pappas, Perdikaris, CViT: Continuous Vision Transformer for Operator Learning, ICLR
2025.
The output is defined at any coordinates. The encoder reads the field on a lattice of its own of `cells` along each
axis (`nn/embedding`: means where the field is finer, lines between its centres where it is coarser), so fields of
any size are resampled, never padded, and a patch always means the same.
Different from the reference code: the Gaussian weights are a softmax (there a ratio that becomes 0/0 in float32
where the lattice is coarse); the latents start smooth (there as noise); a single frame is not aggregated over
time, which would leave queries and keys without a gradient.

    patches     token_j = W vec(u on patch j) + b + e(position of j),    e fixed sines and cosines along each axis
    attention   x = x + W_o [softmax(q_h k_h^T / sqrt(d_head)) v_h]_h,    q from LN(x), k and v from LN(context)
                x = x + W_2 gelu(W_1 LN(x) + b_1) + b_2
    latents     e(x) = LN(W sum_c w_c(x) z_c + b),    w_c(x) = softmax_c(-sharpness |x - c|^2),    c on a lattice

Without a context tokens attend to each other. On a lattice |x - c|^2 is a sum over axes, so the weights are products:
one small matrix an axis instead of one weight for each pair of position and lattice point.
Shapes: frames `(batch, frames, *space, field)`, tokens `(batch, [frames,] tokens, width)`.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis, uniform_axis
from spectrakan.nn.embedding import cell_coordinates, read_sensors, with_params_last
from spectrakan.numerics.resample import along_axis

PUBLISHED_PATCHES: dict[int, tuple[int, int]] = {1: (4, 200), 2: (16, 128), 3: (8, 32)}
"""Patch size and cells along each axis by number of axes; none is published in 3D, so that one is ours."""


@settings
class CViTConfig:
    """Settings of CViT; the defaults are those of its published model class."""

    patch: Count | Literal["auto"] = "auto"
    """Cells along each edge of a patch; "auto": 4 in 1D, 16 in 2D (published), 8 in 3D."""
    cells: Count | Literal["auto"] = "auto"
    """Cells along each axis on which the encoder reads the field; "auto": 200 in 1D, 128 in 2D, 32 in 3D."""
    width: Count = 256
    """Width of the encoder's tokens."""
    num_layers: Count = 3
    """Self-attention blocks of the encoder."""
    num_heads: Count = 8
    """Attention heads of the encoder."""
    time_depth: Count = 2
    """Blocks that aggregate the frames; not used with a history of one frame."""
    mlp_ratio: Count = 1
    """Hidden width of each block's feed-forward network over its width."""
    decoder_width: Count = 256
    """Width of the decoder's queries."""
    decoder_layers: Count = 1
    """Cross-attention blocks of the decoder."""
    decoder_heads: Count = 8
    """Attention heads of the decoder."""
    latent_cells: Count | Literal["auto"] = "auto"
    """Points along each axis of the lattice of latents; "auto": as `cells`."""
    latent_width: Count = 256
    """Width of the latents."""
    sharpness: Annotated[float, Field(gt=0)] = 1e5
    """Sharpness of the Gaussian weights (epsilon in the paper), on a domain of length one."""

    def __post_init__(self) -> None:
        for width, heads in ((self.width, self.num_heads), (self.decoder_width, self.decoder_heads)):
            if width % heads:
                raise ConfigError(f"each width must be a multiple of its heads, got {width} and {heads}")


class CViT(Operator):
    """Encoder of patches, decoder of coordinates; see the file's equations."""

    name = "cvit"
    config: CViTConfig

    def _build(self) -> None:
        signature, config = self.signature, self.config
        dims, width = signature.space_dims, config.width
        published = PUBLISHED_PATCHES[dims]
        patch = published[0] if config.patch == "auto" else config.patch
        cells = published[1] if config.cells == "auto" else config.cells
        if cells % patch:
            raise ConfigError(f"cells must be a multiple of patch, got {cells} and {patch}; set cells={patch * 8}")
        self.cells = (cells,) * dims
        self.patches = Patches((cells // patch,) * dims, patch, signature.in_channels + signature.num_params, width)
        self.frames = _Frames((cells // patch) ** dims, signature.history, config) if signature.history > 1 else None
        self.encoder = _blocks(config.num_layers, width, config.num_heads, config.mlp_ratio)
        self.encoder_norm = nn.LayerNorm(width)
        self.bridge = nn.Linear(width, config.decoder_width)
        latent_cells = cells if config.latent_cells == "auto" else config.latent_cells
        self.coordinates = LatentGrid(
            (latent_cells,) * dims, config.latent_width, config.decoder_width, config.sharpness
        )
        decoder = (config.decoder_layers, config.decoder_width, config.decoder_heads, config.mlp_ratio)
        self.decoder = _blocks(*decoder, cross=True)
        self.norm = nn.LayerNorm(config.decoder_width)
        self.feed = nn.Linear(config.decoder_width, config.decoder_width)
        self.feed_norm = nn.LayerNorm(config.decoder_width)
        self.head = nn.Linear(config.decoder_width, self.network_out_channels)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Encode the history, then decode at each cell centre."""
        tokens = self.bridge(self.encode(history, params, axes))
        x = self.coordinates(axes)[None]
        for block in self.decoder:
            x = block(x, tokens)
        x = self.norm(x)
        rows = self.head(self.feed_norm(x + F.gelu(self.feed(x))))
        return cast(Tensor, rows.unflatten(1, history.shape[2:-1]))

    def encode(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The encoder's tokens, `(batch, patches, width)`."""
        tokens = self.patches(with_params_last(read_sensors(history, axes, self.cells), params))
        tokens = tokens[:, 0] if self.frames is None else self.frames(tokens)
        for block in self.encoder:
            tokens = block(tokens)
        return cast(Tensor, self.encoder_norm(tokens))


class _Frames(nn.Module):
    """A learned latent a patch attends to its tokens over time: `(batch, T, P, width)` -> `(batch, P, width)`."""

    times: Tensor

    def __init__(self, num_patches: int, history: int, config: CViTConfig) -> None:
        super().__init__()
        times = sincos_positions(torch.arange(history, dtype=torch.float64), config.width)
        self.register_buffer("times", times.to(torch.get_default_dtype())[:, None], persistent=False)
        self.latents = nn.Parameter(0.02 * torch.randn(num_patches, config.width))
        self.blocks = _blocks(config.time_depth, config.width, config.num_heads, config.mlp_ratio, cross=True)
        self.norm = nn.LayerNorm(config.width)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, _, patches, _ = tokens.shape
        context = (tokens + self.times).transpose(1, 2).flatten(0, 1)
        x = self.latents.expand(batch, -1, -1).flatten(0, 1)[:, None]
        for block in self.blocks:
            x = block(x, context)
        return cast(Tensor, self.norm(x.view(batch, patches, -1)))


START_CYCLES = 0.7
"""Standard deviation of the latents' frequencies before training, in cycles over the domain."""


class AttentionBlock(nn.Module):
    """See the file's equations; `cross=True` for a block with a context.

    An x of batch 1 is the query for the contexts of all samples.
    """

    def __init__(self, width: int, num_heads: int, *, mlp_ratio: int = 1, cross: bool = False) -> None:
        super().__init__()
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
        return cast(Tensor, x + self.feed(self.feed_norm(x)))

    def _heads(self, rows: Tensor) -> Tensor:
        return cast(Tensor, rows.unflatten(-1, (self.num_heads, -1)).transpose(1, 2))


def _blocks(count: int, width: int, num_heads: int, mlp_ratio: int, *, cross: bool = False) -> nn.ModuleList:
    return nn.ModuleList(AttentionBlock(width, num_heads, mlp_ratio=mlp_ratio, cross=cross) for _ in range(count))


class Patches(nn.Module):
    """A field of a whole number of patches along each axis to one token a patch."""

    positions: Tensor

    def __init__(self, counts: Sequence[int], patch: int, in_channels: int, width: int) -> None:
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(in_channels * patch ** len(counts), width)
        self.register_buffer("positions", patch_positions(counts, width), persistent=False)

    def forward(
        self, frames: Float[Tensor, "batch frames *space field"]
    ) -> Float[Tensor, "batch frames patches width"]:
        """Tokens of each frame."""
        return cast(Tensor, self.embed(cut(frames, self.patch)) + self.positions)


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
        # sqrt(2) cos(2 pi (f . c + phase)) at the lattice points c, f and phase drawn for each latent channel.
        lattice = cell_coordinates([uniform_axis(count, False) for count in counts], torch.zeros(()))
        angle = lattice @ (START_CYCLES * torch.randn(len(counts), latent_width)) + torch.rand(latent_width)
        self.latents = nn.Parameter((2**0.5 * torch.cos(2 * math.pi * angle)).view(*counts, latent_width))
        self.embed = nn.Linear(latent_width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, axes: Sequence[Axis]) -> Tensor:
        """One vector for each cell of the grid with these axes, `(cells, width)`."""
        return cast(Tensor, self.norm(self.embed(self.interpolate(axes).flatten(0, -2))))

    def interpolate(self, axes: Sequence[Axis]) -> Tensor:
        """The latents at the cell centres, `(*space, latent_width)`."""
        values: Tensor = self.latents
        for dim, axis in enumerate(axes):
            lattice = uniform_axis(self.latents.shape[dim], periodic=False)
            weights = gaussian_weights(axis.centres, lattice.centres, self.sharpness)
            values = along_axis(weights.to(values), values, dim)
        return values


def gaussian_weights(
    points: Float[Tensor, " n"], centres: Float[Tensor, " g"], sharpness: float
) -> Float[Tensor, "n g"]:
    """exp(-s (x - c)^2) / sum_c exp(-s (x - c)^2), rows summing to one.

    Written as a softmax, the largest exponent is subtracted first, so no row becomes 0/0, whatever the
    sharpness. On a lattice of centres the weights in several dimensions are products of these.
    """
    return torch.softmax(-sharpness * (points[:, None] - centres).square(), dim=1)


def sincos_positions(points: Float[Tensor, " n"], width: int) -> Float[Tensor, "n width"]:
    """Sines, then cosines, of `points` at width / 2 frequencies falling from 1 to 1/10000 in geometric steps."""
    half = width // 2
    order = torch.arange(half, dtype=points.dtype, device=points.device)
    angle = points[:, None] * torch.exp(-math.log(1e4) * order / max(half, 1))
    odd = [torch.zeros_like(points[:, None])] if width % 2 else []
    return torch.cat([angle.sin(), angle.cos(), *odd], dim=1)
