"""CViT: a vision transformer encodes the history, queries at coordinates decode it.

encoder   tokens = patches of each frame + fixed embeddings of position and time; a learned latent at each position
          attends to its tokens over time (`time_depth` blocks); then `num_layers` self-attention blocks and LN
decoder   e(x) = latents on a lattice, interpolated with Gaussian weights; e(x) attends to the encoder's tokens in
          `decoder_layers` cross-attention blocks (all in `nn/vision_transformer`)
u_next(x) = W (y + gelu(W_1 y + b_1)) + b,     y = LN(decoder(x))

Wang, Seidman, Sankaran, Wang, Pappas, Perdikaris, CViT: Continuous Vision Transformer for Operator Learning, ICLR
2025.
The output is defined at any coordinates. The encoder reads the field on a lattice of its own of `cells` along each
axis (`nn/embedding`: means where the field is finer, lines between its centres where it is coarser), so fields of
any size are resampled, never padded, and a patch always means the same.
Different from the reference code: the Gaussian weights are a softmax (there a ratio that becomes 0/0 in float32
where the lattice is coarse); the latents start smooth (there as noise); a single frame is not aggregated over
time, which would leave queries and keys without a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import read_sensors, with_params_last
from spectrakan.nn.vision_transformer import AttentionBlock, LatentGrid, Patches
from spectrakan.numerics.radial import sincos_positions

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

    def __init__(self, signature: OperatorSignature, config: CViTConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, stages)
        dims, width = signature.space_dims, config.width
        patch, cells = lattice_of(signature, config)
        self.cells = (cells,) * dims
        self.patches = Patches((cells // patch,) * dims, patch, signature.in_channels + signature.num_params, width)
        self.frames = _Frames((cells // patch) ** dims, signature.history, config) if signature.history > 1 else None
        self.encoder = nn.ModuleList(
            AttentionBlock(width, config.num_heads, mlp_ratio=config.mlp_ratio) for _ in range(config.num_layers)
        )
        self.encoder_norm = nn.LayerNorm(width)
        self.bridge = nn.Linear(width, config.decoder_width)
        latent_cells = cells if config.latent_cells == "auto" else config.latent_cells
        self.coordinates = LatentGrid(
            (latent_cells,) * dims, config.latent_width, config.decoder_width, config.sharpness
        )
        self.decoder = nn.ModuleList(
            AttentionBlock(config.decoder_width, config.decoder_heads, mlp_ratio=config.mlp_ratio, cross=True)
            for _ in range(config.decoder_layers)
        )
        self.norm = nn.LayerNorm(config.decoder_width)
        self.feed = nn.Linear(config.decoder_width, config.decoder_width)
        self.head = nn.Linear(config.decoder_width, self.network_out_channels)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Encode the history, then decode at each cell centre."""
        tokens = self.bridge(self.encode(history, params, axes))
        x = self.coordinates(axes)[None]
        for block in self.decoder:
            x = block(x, tokens)
        x = self.norm(x)
        output: Tensor = self.head(x + F.gelu(self.feed(x))).unflatten(1, history.shape[2:-1])
        return output

    def encode(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The encoder's tokens, `(batch, patches, width)`."""
        tokens = self.patches(with_params_last(read_sensors(history, axes, self.cells), params))
        tokens = tokens[:, 0] if self.frames is None else self.frames(tokens)
        for block in self.encoder:
            tokens = block(tokens)
        encoded: Tensor = self.encoder_norm(tokens)
        return encoded


class _Frames(nn.Module):
    """A learned latent a patch attends to its tokens over time: `(batch, T, P, width)` -> `(batch, P, width)`."""

    times: Tensor

    def __init__(self, num_patches: int, history: int, config: CViTConfig) -> None:
        super().__init__()
        times = sincos_positions(torch.arange(history, dtype=torch.float64), config.width)
        self.register_buffer("times", times.to(torch.get_default_dtype())[:, None], persistent=False)
        self.latents = nn.Parameter(0.02 * torch.randn(num_patches, config.width))
        self.blocks = nn.ModuleList(
            AttentionBlock(config.width, config.num_heads, mlp_ratio=config.mlp_ratio, cross=True)
            for _ in range(config.time_depth)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        batch, _, patches, _ = tokens.shape
        context = (tokens + self.times).transpose(1, 2).flatten(0, 1)
        x = self.latents.expand(batch, -1, -1).flatten(0, 1)[:, None]
        for block in self.blocks:
            x = block(x, context)
        return x.view(batch, patches, -1)


def lattice_of(signature: OperatorSignature, config: CViTConfig) -> tuple[int, int]:
    """Patch size and cells along each axis of the encoder's lattice."""
    published = PUBLISHED_PATCHES[signature.space_dims]
    patch = published[0] if config.patch == "auto" else config.patch
    cells = published[1] if config.cells == "auto" else config.cells
    if cells % patch:
        raise ConfigError(f"cells must be a multiple of patch, got {cells} and {patch}; set cells={patch * 8}")
    return patch, cells
