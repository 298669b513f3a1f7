"""LNO: the Laplace neural operator, linear systems with learned poles between pointwise maps.

    v = L [u, x],     v <- N K N v + P v + b,     u_next = Q sin(Q' v),     K the pole-residue layer, N instance norm

Cao et al., Laplace neural operator for solving differential equations, Nature Machine Intelligence 2024. Sizes
follow the published scripts by dimension: 16 poles and width 4 in 1D (no coordinates, no norm), 4 and 16 in 2D, 4 and
8 in 3D (readout of 64 with relu; norm only in 2D). Faults of the published code, corrected in `nn.pole_residue`:
its poles start with, and may keep, a positive real part, so that outputs grow without bound; its transient
part contracts the channels twice; over several axes it leaves out the products of one axis' steady with another's
transient part; it holds batch x width² x poles^d x cells^d numbers at once; and it needs the training grid.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.fields import OperatorSignature
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import channels_first, channels_last, with_coordinates, with_params
from spectrakan.nn.pointwise import pointwise
from spectrakan.nn.pole_residue import PoleResidue
from spectrakan.numerics.quadrature import weighted_mean

PUBLISHED_SIZES: dict[int, tuple[int, int, int]] = {1: (4, 16, 128), 2: (16, 4, 128), 3: (8, 4, 64)}
"""Width, poles and readout width by the number of axes."""
NORM_FLOOR = 1e-5


@settings
class LNOConfig:
    """Settings of the operator; unset ones have the published size for the number of axes."""

    width: Count | None = None
    """Channels of the features: 4, 16, 8 in 1D, 2D, 3D."""
    num_modes: Count | None = None
    """Poles along each axis: 16, 4, 4."""
    num_layers: Count = 1
    """Laplace layers, with a sine between."""
    norm: bool | None = None
    """Instance norm before and after each Laplace layer: in 2D only."""
    readout_width: Count | None = None
    """Hidden channels of the readout: 128, 128, 64."""


class LaplaceLayer(nn.Module):
    """N K N v + P v + b."""

    def __init__(self, width: int, num_modes: int, space_dims: int, *, norm: bool) -> None:
        super().__init__()
        self.systems = PoleResidue(width, num_modes, space_dims)
        self.pointwise = nn.Linear(width, width)
        self.norm = norm

    def forward(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """`(channel, batch, *space)` to the same shape."""
        output = self.systems(instance_norm(field, axes) if self.norm else field, axes)
        output = instance_norm(output, axes) if self.norm else output
        return output + pointwise(self.pointwise.weight, self.pointwise.bias, field)


class LNO(Operator):
    """The operator of the file's equations."""

    name = "lno"
    config: LNOConfig

    def __init__(self, signature: OperatorSignature, config: LNOConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, stages)
        dims, published = signature.space_dims, PUBLISHED_SIZES[signature.space_dims]
        given = (config.width, config.num_modes, config.readout_width)
        width, modes, hidden = (own or size for own, size in zip(given, published, strict=True))
        self.located = dims > 1
        channels = signature.history * signature.in_channels + signature.num_params + (dims if self.located else 0)
        norm = dims == 2 if config.norm is None else config.norm
        self.lift = nn.Linear(channels, width)
        self.layers = nn.ModuleList(LaplaceLayer(width, modes, dims, norm=norm) for _ in range(config.num_layers))
        self.hidden = nn.Linear(width, hidden)
        self.out = nn.Linear(hidden, self.network_out_channels)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Lift, Laplace layers, readout at unit scale."""
        inputs = with_params(channels_first(history), params)
        inputs = with_coordinates(inputs, axes) if self.located else inputs
        field = pointwise(self.lift.weight, self.lift.bias, inputs)
        for number, layer in enumerate(self.layers, start=1):
            field = layer(field, axes)
            field = field if number == len(self.layers) else field.sin()
        hidden = pointwise(self.hidden.weight, self.hidden.bias, field)
        hidden = F.relu(hidden) if len(axes) == 3 else hidden.sin()
        return channels_last(pointwise(self.out.weight, self.out.bias, hidden))


def instance_norm(field: Tensor, axes: Sequence[Axis]) -> Tensor:
    """Mean 0 and variance 1 over space, for each channel and sample, by the cells' volumes."""
    weights = [axis.weights.to(field.dtype).to(field.device) for axis in axes]
    shape = (*field.shape[:2], *[1] * len(axes))
    centred = field - weighted_mean(field, weights).view(shape)
    variance = weighted_mean(centred.square(), weights).view(shape)
    return centred * torch.rsqrt(variance + NORM_FLOOR)
