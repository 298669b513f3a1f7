"""Transolver: attention among learned physical slices of the domain.

x_i = W_2 gelu(W_1 [u_i, p_i] + b_1) + b_2           history, parameters and position of cell i lifted
x   = x + A(LN(x)),     x = x + MLP(LN(x))           `num_layers` times, A slice attention (`nn/slice_attention`)
u_next(x_i) = W LN(x_i) + b

Wu, Luo, Wang, Wang, Long, Transolver: A Fast Transformer Solver for PDEs on General Geometries, ICML 2024.
Cells enter by their coordinates and slices are means by volume, so with `projection="linear"` (the published
form for irregular meshes) the model is one operator at every resolution and on every grid, in 1D, 2D and 3D.
`projection="convolution"` is the published form for structured grids: it reads neighbours, which move closer as
the grid refines; `variant="darcy"` is this form at its size for Darcy flow. Different from the reference code:
- the slice map keeps its orthogonal start, which there is overwritten by the general one;
- weights start with a deviation that falls with the fan-in, and coordinates come at zero mean and unit variance;
  there it is 0.02 for every map and [0, 1], so that positions and narrow networks start near zero;
- the temperature is clamped to [0.1, 5] in both forms, there only on structured grids;
- the sizes of the grid are not fixed, and there is no placeholder vector, which no task with an input uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import cell_coordinates, cell_shares, lattice_distances, with_params_last
from spectrakan.nn.slice_attention import Projection, SliceAttention

START_GAIN, LIFT_GAIN = 0.8, 1.7
"""Deviation of starting weights times the square root of the fan-in: in the blocks and the head, and in the lift."""
UNIT_VARIANCE = 12**0.5
"""One over the deviation of a coordinate that is spread evenly on [0, 1]."""


@settings
class TransolverConfig:
    """Settings of Transolver; the defaults are those of its published model class."""

    width: Count = 256
    """Channels of the features, a multiple of `num_heads`."""
    num_layers: Count = 5
    """Blocks; 8 in the published runs on Darcy flow and Navier-Stokes."""
    num_heads: Count = 8
    """Attention heads."""
    num_slices: Count = 32
    """Slices of the domain in each head; 64 in the published run on Darcy flow."""
    mlp_ratio: Count = 1
    """Hidden width of each block's feed-forward network over `width`."""
    projection: Projection = "linear"
    """Whether features are projected cell by cell, or by 3-wide convolutions over neighbouring cells."""
    positions: Literal["coordinates", "distances"] = "coordinates"
    """Position of a cell: its coordinates, or its distances to a lattice of points (as published on grids)."""
    lattice: Count = 8
    """Points along each axis of that lattice."""

    def __post_init__(self) -> None:
        if self.width % self.num_heads:
            raise ConfigError(f"width must be a multiple of num_heads, got {self.width} and {self.num_heads}")


class Transolver(Operator):
    """Blocks of slice attention on cells with their positions; see the file's equations."""

    name = "transolver"
    config: TransolverConfig

    def __init__(self, signature: OperatorSignature, config: TransolverConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, stages)
        channels = signature.history * signature.in_channels + signature.num_params
        by_distance = config.positions == "distances"
        numbers = config.lattice**signature.space_dims if by_distance else signature.space_dims
        self.lift = nn.Linear(channels, 2 * config.width)
        self.position = nn.Linear(numbers, 2 * config.width, bias=False)
        self.lift_out = nn.Linear(2 * config.width, config.width)
        self.blocks = nn.ModuleList(_Block(signature.space_dims, config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, self.network_out_channels)
        self.apply(_start)
        for layer in (self.lift, self.position, self.lift_out):
            nn.init.trunc_normal_(layer.weight, std=LIFT_GAIN * layer.in_features**-0.5)
        for module in self.modules():
            if isinstance(module, SliceAttention):
                nn.init.orthogonal_(module.slice.weight)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Cells as rows, lifted with their positions, through the blocks, and back to a field."""
        space = history.shape[2:-1]
        rows = with_params_last(history.movedim(1, -2).flatten(-2).flatten(1, -2), params)
        # The position of a cell is the same for all samples: its part of the first product is computed once.
        x = self.lift_out(F.gelu(self.lift(rows) + self.position(self._positions(axes, history))))
        shares = cell_shares(axes, history)
        for block in self.blocks:
            x = block(x, shares, space)
        output: Tensor = self.head(self.norm(x)).unflatten(1, space)
        return output

    def _positions(self, axes: Sequence[Axis], like: Tensor) -> Tensor:
        if self.config.positions == "coordinates":
            return UNIT_VARIANCE * (cell_coordinates(axes, like) - 0.5)
        return lattice_distances(axes, self.config.lattice, like)


class _Block(nn.Module):
    """x + A(LN(x)), then x + MLP(LN(x))."""

    def __init__(self, space_dims: int, config: TransolverConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.mlp_ratio * config.width
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SliceAttention(
            width, config.num_heads, config.num_slices, projection=config.projection, space_dims=space_dims
        )
        self.feed = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor, shares: Tensor, space: Sequence[int]) -> Tensor:
        x = x + self.attention(self.attention_norm(x), shares, space)
        changed: Tensor = x + self.feed(self.feed_norm(x))
        return changed


def _start(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=START_GAIN * module.in_features**-0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
