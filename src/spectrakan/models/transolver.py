"""Transolver: attention among learned physical slices of the domain.

x_i = W_2 gelu(W_1 [u_i, p_i] + b_1) + b_2           history, parameters and position of cell i lifted
x   = x + A(LN(x)),     x = x + MLP(LN(x))           `num_layers` times, A slice attention
u_next(x_i) = W LN(x_i) + b

Wu, Luo, Wang, Wang, Long, Transolver: A Fast Transformer Solver for PDEs on General Geometries, ICML 2024.
This is the published form for irregular meshes: cells enter by their coordinates and slices are means by volume, so
it is one operator at every resolution and on every grid, in 1D, 2D and 3D. The published form for structured grids
projects by 3-wide convolutions, whose neighbours move closer as the grid refines. Different from the reference code:
- the slice map keeps its orthogonal start, which there is overwritten by the general one;
- weights start with a deviation that falls with the fan-in, and coordinates come at zero mean and unit variance;
  there it is 0.02 for every map and [0, 1], so that positions and narrow networks start near zero;
- the temperature is clamped to [0.1, 5], there only on structured grids;
- the sizes of the grid are not fixed, and there is no placeholder vector, which no task with an input uses.

Slice attention, per head, with features x_i of cell i, its volume share v_i and projections f, g of the features:
    w_ik = softmax_k((S g_i + b)_k / temperature)             how much of cell i belongs to slice k
    z_k  = sum_i v_i w_ik f_i / sum_i v_i w_ik                 a slice's token: the mean over its cells
    z'   = softmax(Q z (K z)^T / sqrt(d_head)) V z             plain attention among the few tokens
    y_i  = sum_k w_ik z'_k                                     back to the cells; heads are joined by a linear map
Cells cost N * slices instead of N^2. Shapes: x `(batch, cells, width)`, weights `(batch, heads, cells, slices)`.
"""

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import cell_coordinates, cell_shares, with_params_last

SMALLEST_SHARE = 1e-9
"""Added to a slice's volume, so that an empty slice has the token zero."""
COLDEST, HOTTEST = 0.1, 5.0


class SliceAttention(nn.Module):
    """See the file's equations, with every linear map moved from the cells to the slices, which are fewer.

    S (W x_i) = (S W) x_i;  sum_i w_ik W x_i = W sum_i w_ik x_i;  W_o sum_k w_ik z'_k = sum_k w_ik W_o z'_k.
    """

    def __init__(self, width: int, num_heads: int, num_slices: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        head = width // num_heads
        self.content, self.address = nn.Linear(width, width), nn.Linear(width, width)
        self.slice = nn.Linear(head, num_slices)
        self.temperature = nn.Parameter(torch.full((num_heads,), 0.5))
        self.query, self.key, self.value = (nn.Linear(head, head, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(
        self, x: Float[Tensor, "batch cells width"], shares: Float[Tensor, " cells"]
    ) -> Float[Tensor, "batch cells width"]:
        """Mix the cells through the slices."""
        heads, slices = self.num_heads, self.slice.out_features
        address, content = _by_head(self.address, heads), _by_head(self.content, heads)
        temperature = self.temperature.clamp(COLDEST, HOTTEST)[:, None, None]
        mapped = (self.slice.weight @ address[0] / temperature).flatten(0, 1)
        offset = ((address[1] @ self.slice.weight.T + self.slice.bias) / temperature[..., 0]).flatten()
        logits = F.linear(x, mapped, offset).unflatten(-1, (heads, slices))
        weights = torch.softmax(logits, dim=-1).flatten(2)
        volume = (shares @ weights).unflatten(1, (heads, slices))[..., None]
        pooled = (weights.transpose(1, 2) @ (x * shares[:, None])).unflatten(1, (heads, slices))
        tokens = (pooled @ content[0].transpose(1, 2) + volume * content[1][:, None]) / (volume + SMALLEST_SHARE)
        mixed = F.scaled_dot_product_attention(self.query(tokens), self.key(tokens), self.value(tokens))
        joined = (mixed @ self.out.weight.T.unflatten(0, (heads, -1))).flatten(1, 2)
        return cast(Tensor, weights @ joined + self.out.bias)


def _by_head(project: nn.Linear, heads: int) -> tuple[Tensor, Tensor]:
    """Weight `(heads, d_head, width)` and bias `(heads, d_head)` of a linear map."""
    return project.weight.unflatten(0, (heads, -1)), project.bias.unflatten(0, (heads, -1))


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

    def __post_init__(self) -> None:
        if self.width % self.num_heads:
            raise ConfigError(f"width must be a multiple of num_heads, got {self.width} and {self.num_heads}")


class Transolver(Operator):
    """Blocks of slice attention on cells with their positions; see the file's equations."""

    name = "transolver"
    config: TransolverConfig

    def _build(self) -> None:
        signature, config = self.signature, self.config
        channels = signature.history * signature.in_channels + signature.num_params
        self.lift = nn.Linear(channels, 2 * config.width)
        self.position = nn.Linear(signature.space_dims, 2 * config.width, bias=False)
        self.lift_out = nn.Linear(2 * config.width, config.width)
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.num_layers))
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
        x = self.lift_out(
            F.gelu(self.lift(rows) + self.position(UNIT_VARIANCE * (cell_coordinates(axes, history) - 0.5)))
        )
        shares = cell_shares(axes, history)
        for block in self.blocks:
            x = block(x, shares)
        return cast(Tensor, self.head(self.norm(x)).unflatten(1, space))


class _Block(nn.Module):
    """x + A(LN(x)), then x + MLP(LN(x))."""

    def __init__(self, config: TransolverConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.mlp_ratio * config.width
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SliceAttention(width, config.num_heads, config.num_slices)
        self.feed = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor, shares: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), shares)
        return cast(Tensor, x + self.feed(self.feed_norm(x)))


def _start(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=START_GAIN * module.in_features**-0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
