"""FNO: the Fourier neural operator, as PDEBench trains it.

    v_0 = L [u, x],     v_{l+1} = sigma( F^{-1}[W_l F v_l] + P_l v_l + b_l ),     u_next = Q sigma(Q' v_4)

with no sigma after the last layer, low modes of all axes jointly, and zeros past the far end of each axis while the
layers act. Li et al., Fourier Neural Operator for Parametric Partial Differential Equations, ICLR 2021; sizes of
Takamoto et al., PDEBench, NeurIPS 2022.
Three things differ from the code that PDEBench runs, none of them in the function of given weights on its grids:
modes that the cells do not resolve are left out instead of failing, coordinates are mapped to [0, 1], and Fourier
weights start at the size that keeps a mode's variance, with which Darcy flow needs fewer epochs than with uniform
numbers over width².
"""

from collections.abc import Sequence
from typing import Annotated, cast

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis, padded_axis
from spectrakan.nn.embedding import channels_first, channels_last, with_coordinates, with_params
from spectrakan.nn.feed_forward import Readout
from spectrakan.nn.joint_spectral import FourierLayer
from spectrakan.nn.pointwise import PointwiseLinear
from spectrakan.numerics.fourier import Basis


@settings
class FNOConfig:
    """Settings of the operator; defaults are PDEBench's."""

    width: Count = 20
    """Channels of the features."""
    num_modes: Count = 12
    """Modes along each axis, of either sign."""
    num_layers: Count = 4
    """Fourier layers."""
    padding: Annotated[int, Field(ge=0)] = 2
    """Cells of zeros past the far end of each axis, as published, so that a model changes by O(padding / n) between
    grids; 0: none."""
    readout_width: Count = 128
    """Hidden channels of the pointwise readout."""


class LiftedOperator(Operator):
    """Lift of history, parameters and coordinates, `layers` of the subclass, pointwise readout."""

    def _build(self) -> None:
        signature, config = self.signature, self.config
        channels = signature.history * signature.in_channels + signature.num_params + signature.space_dims
        self.lift = PointwiseLinear(channels, config.width)
        self.readout = Readout(config.width, 0, config.readout_width, self.network_out_channels)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Lift, layers, readout at unit scale."""
        inputs = with_params(channels_first(history), params)
        return channels_last(self.readout(self.features(self.lift(self.located(inputs, axes)), axes), None))

    def located(self, inputs: Tensor, axes: Sequence[Axis]) -> Tensor:
        """Inputs with the coordinates behind them."""
        return with_coordinates(inputs, axes)

    def features(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The layers with a nonlinearity between them: `(width, batch, *space)` to the same shape."""
        for number, layer in enumerate(cast(nn.ModuleList, self.layers)):
            field = layer(F.gelu(field) if number else field, axes)
        return field


class FNO(LiftedOperator):
    """The operator of the file's equations."""

    name = "fno"
    cuts_space = True
    config: FNOConfig

    def _build(self) -> None:
        super()._build()
        signature, config = self.signature, self.config
        bases: list[Basis] = ["fourier"] * signature.space_dims
        self.layers = nn.ModuleList(
            FourierLayer(config.width, config.num_modes, bases) for _ in range(config.num_layers)
        )

    def features(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The layers on the box padded with zeros past the far end of each axis."""
        cells = self.config.padding
        wider = tuple(padded_axis(axis, cells) if cells else axis for axis in axes)
        # Of an axis that is cut among processes only the last part is padded.
        more = [larger.cells - axis.cells for larger, axis in zip(wider, axes, strict=True)]
        field = F.pad(field, [side for count in reversed(more) for side in (0, count)]) if any(more) else field
        field = super().features(field, wider)
        for dim, axis in enumerate(axes, start=2):
            field = field.narrow(dim, 0, axis.cells)
        return field.contiguous()
