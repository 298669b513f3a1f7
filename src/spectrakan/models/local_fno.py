"""LocalFNO: the Fourier neural operator with a differential and a local integral branch beside each Fourier layer.

    v_{l+1} = sigma( F^{-1}[W_l F v_l] + D_l v_l + I_l v_l + P_l v_l + b_l )

D is a learned stencil that converges to a derivative (`nn/local_kernels`), I the integral against a learned kernel on
a ball whose radius is a share of the domain; both keep their meaning on every grid.
Liu-Schiaffini et al., Neural Operators with Localized Integral and Differential Kernels, ICML 2024. The paper gives
no size for all tasks: layers, 3-wide stencils and two rings are those of its library, width and modes are FNO's
here, so that the two differ by the branches alone, and the radius is 1/16. Published in 2D and without the integral
in 1D; here one code for all.
Past the ends of an axis that is not periodic D continues the field along a parabola and I mirrors it, so that layers
in a row converge there too, at first order. As in the paper's library there is no padding, because its edge has no
derivative. For the same reason the coordinate of a periodic axis is given as (1 - cos 2 pi x) / 2, which has no jump.
"""

import math
from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.models.fno import LiftedOperator
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import with_coordinates
from spectrakan.nn.joint_spectral import FourierLayer
from spectrakan.nn.local_kernels import DifferentialKernel, LocalIntegral


@settings
class LocalFNOConfig:
    """Settings of the operator."""

    width: Count = 20
    """Channels of the features."""
    num_modes: Count = 12
    """Modes along each axis, of either sign."""
    num_layers: Count = 4
    """Layers."""
    radius: Annotated[float, Field(gt=0, le=0.5)] = 0.0625
    """Radius of the local kernels in shares of the domain."""
    rings: Annotated[int, Field(ge=1)] = 2
    """Nodes of the local kernels along the radius."""
    readout_width: Count = 128
    """Hidden channels of the pointwise readout."""


class LocalFourierLayer(nn.Module):
    """All branches of a layer, summed."""

    def __init__(self, space_dims: int, config: LocalFNOConfig) -> None:
        super().__init__()
        width = config.width
        self.fourier = FourierLayer(width, config.num_modes, ["fourier"] * space_dims)
        # The derivative of the highest wave that the Fourier branch keeps comes out at its own size.
        length = 1 / (2 * math.pi * config.num_modes)
        self.differential = DifferentialKernel(width, space_dims, length)
        self.integral = LocalIntegral(width, space_dims, config.radius, config.rings)

    def forward(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """`(channel, batch, *space)` to the same shape."""
        total: Tensor = self.fourier(field, axes) + self.differential(field, axes) + self.integral(field, axes)
        return total


class LocalFNO(LiftedOperator):
    """The operator of the file's equation."""

    name = "local_fno"
    config: LocalFNOConfig

    def _build(self) -> None:
        super()._build()
        signature, config = self.signature, self.config
        self.layers = nn.ModuleList(LocalFourierLayer(signature.space_dims, config) for _ in range(config.num_layers))

    def located(self, inputs: Tensor, axes: Sequence[Axis]) -> Tensor:
        """Inputs with one coordinate an axis, without a jump where the axis is periodic."""
        located = with_coordinates(inputs, axes)
        parts = [located[: len(inputs)]]
        for channel, axis in zip(located[len(inputs) :], axes, strict=True):
            parts.append((((1 - torch.cos(2 * math.pi * channel)) / 2) if axis.periodic else channel)[None])
        return torch.cat(parts)
