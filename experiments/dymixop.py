"""DyMixOp: dynamics of local maps, derivatives and products of a local with a global map.

    c_0 = R L [u, x],     F_l(c) = gelu( P c + D c + A (G c * Q c) )
    c_{l+1} = c_l + sigmoid(lambda) F_l(c_l),     u_next = L' R' ( c_0 + sum_l a_l F_l(c_l) + b )

G is the Fourier layer, D a learned stencil that becomes a derivative, P and Q pointwise maps; A, R L and L' R' are
two pointwise maps each, with nothing between, through twice the channels. Lai, Chen, Xu, DyMixOp: A Neural Operator
Designed from a Complex Dynamics Perspective with Local-Global Mixing for Solving PDEs, arXiv 2508.13490, 2025 (code:
Lain-PY/DyMixOp at bc6951b). Settings that the published runs leave at their defaults (one product and one linear term
a layer, pointwise kernels) are not options here. Weights start as there: G near zero, so that the products are silent
at first, lambda as the width, so that its sigmoid is one.
Different from the published code: stencils are divided by the width of cells, so that the model is one operator on
all grids (there they count in cells; equal at `reference_cells`), and past the ends of axes that are not periodic the
field is continued by a parabola (there periodically); the coordinate of a periodic axis has no jump, whose derivative
would grow with the number of cells; parameters are channels. The code passes the width of cells in the place of a
time coefficient that multiplies lambda; it is one on the training grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spectrakan.config import Count, build_settings, settings
from spectrakan.fields import Grid, OperatorSignature
from spectrakan.models.catalog import known_factory, register_model
from spectrakan.nn.axis import Axis, axes_of
from spectrakan.nn.embedding import channels_first, channels_last, with_coordinates, with_params
from spectrakan.nn.joint_spectral import FourierLayer
from spectrakan.nn.local_kernels import DifferentialKernel
from spectrakan.nn.pointwise import PointwiseLinear
from spectrakan.numerics.fourier import Basis

SIZES: tuple[tuple[int, int], tuple[int, int]] = ((48, 8), (20, 4))
"""Width and layers on one axis (published for 1D Kuramoto-Sivashinsky) and on several (published: 64 to 96 and 4)."""


@settings
class DyMixOpConfig:
    """Settings of the operator; unset ones are `SIZES`."""

    width: Count | None = None
    """Channels of the features."""
    num_layers: Count | None = None
    """Layers of the dynamics."""
    num_modes: Count = 12
    """Modes along each axis, of either sign."""
    reference_cells: Count = 64
    """Cells along an axis on which stencils count in cells."""


class MixingLayer(nn.Module):
    """P c + D c + A (G c * Q c)."""

    def __init__(self, width: int, space_dims: int, config: DyMixOpConfig) -> None:
        super().__init__()
        bases: list[Basis] = ["fourier"] * space_dims
        self.spread = FourierLayer(width, config.num_modes, bases, pointwise=False)
        self.factor, self.local = PointwiseLinear(width, width), PointwiseLinear(width, width)
        self.differential = DifferentialKernel(width, space_dims, 1 / config.reference_cells)
        self.widen, self.narrow = PointwiseLinear(width, 2 * width), PointwiseLinear(2 * width, width)
        bound = (width * 3**space_dims) ** -0.5
        nn.init.uniform_(self.differential.weight, -bound, bound)
        nn.init.uniform_(self.spread.weight, 0, width**-2)

    def forward(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """`(channel, batch, *space)` to the same shape."""
        product = self.spread(field, axes) * self.factor(field)
        total: Tensor = self.local(field) + self.differential(field, axes) + self.narrow(self.widen(product))
        return total


class DyMixOp(nn.Module):
    """The operator of the file's equations, at unit scale."""

    def __init__(self, signature: OperatorSignature, config: DyMixOpConfig) -> None:
        super().__init__()
        self.boundary = signature.boundary or ("wall",) * signature.space_dims
        dims = signature.space_dims
        published = SIZES[dims > 1]
        width, layers = config.width or published[0], config.num_layers or published[1]
        channels = signature.history * signature.in_channels + signature.num_params + dims
        self.lift = nn.Sequential(PointwiseLinear(channels, 2 * width), PointwiseLinear(2 * width, width))
        self.layers = nn.ModuleList(MixingLayer(width, dims, config) for _ in range(layers))
        self.rate = nn.Parameter(torch.tensor(float(width)))
        self.gather = nn.Linear(layers, 1)
        self.readout = nn.Sequential(
            PointwiseLinear(width, 2 * width), PointwiseLinear(2 * width, signature.out_channels)
        )

    def forward(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """`(batch, history, *space, in)` -> `(batch, *space, out)`."""
        axes = axes_of(x.shape[2:-1], grid, [kind == "periodic" for kind in self.boundary])
        first = self.lift(located(with_params(channels_first(x), params), axes))
        return channels_last(self.readout(self.dynamics(first, axes)))

    def dynamics(self, first: Tensor, axes: Sequence[Axis]) -> Tensor:
        """c_0 to c_0 + sum_l a_l F_l + b."""
        field, total = first, first + self.gather.bias
        for layer, share in zip(self.layers, self.gather.weight[0], strict=True):
            change = F.gelu(layer(field, axes))
            total = total + share * change
            field = field + torch.sigmoid(self.rate) * change
        return total


def located(inputs: Tensor, axes: Sequence[Axis]) -> Tensor:
    """Inputs with one coordinate an axis: x, or (1 - cos 2 pi x) / 2 where the axis is periodic."""
    places = with_coordinates(inputs[:0], axes)
    smooth = [
        (1 - torch.cos(2 * math.pi * x)) / 2 if axis.periodic else x for x, axis in zip(places, axes, strict=True)
    ]
    return torch.cat([inputs, torch.stack(smooth)])


def dymixop(signature: OperatorSignature, **chosen: Any) -> nn.Module:
    """DyMixOp with settings by name."""
    return DyMixOp(signature, build_settings(DyMixOpConfig, chosen, where="model"))


def register_dymixop() -> None:
    """Make it known by name in this process."""
    if known_factory("dymixop") is None:
        register_model("dymixop", dymixop)
