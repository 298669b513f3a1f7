"""F-FNO: the factorized Fourier neural operator; modes along each axis by themselves, in residual layers.

    v_0 = L [u, x],     v_{l+1} = v_l + T_l relu(S_l sum_a F_a^{-1}[W_{l,a} F_a v_l]),     u_next = Q sigma(Q' v_L)

Tran et al., Factorized Fourier Neural Operators, ICLR 2023; defaults are its 24 layers on the torus, with one set of
W for all layers and normed weights in S, T and L. Faults of the published code, corrected here: its head takes the
last layer's branch instead of the sum v_L, so that the residual path has no effect, and has two linear maps with
nothing between, which are one. Its module is written for two axes; this is the same layer over any number.
"""

from collections.abc import Sequence
from typing import Annotated, cast

from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from spectrakan.config import Count, settings
from spectrakan.models.fno import LiftedOperator
from spectrakan.nn.axis import Axis
from spectrakan.nn.execution import force_fp32
from spectrakan.nn.feed_forward import Network
from spectrakan.nn.pointwise import PointwiseLinear
from spectrakan.nn.residual import ResidualLayer, residual_layers
from spectrakan.nn.spectral import AxialSpectral
from spectrakan.numerics.fourier import Basis


@settings
class FFNOConfig:
    """Settings of the operator; defaults are the paper's on the torus."""

    width: Count = 64
    """Channels of the features."""
    num_modes: Count = 16
    """Modes along each axis."""
    num_layers: Count = 24
    """Residual layers."""
    mlp_ratio: Count = 4
    """Hidden channels of the feed-forward networks over `width`."""
    share_weights: bool = True
    """Whether all layers have the same Fourier weights W."""
    weight_norm: bool = True
    """Whether rows of pointwise matrices are stored as length and direction."""
    gain: Annotated[float, Field(gt=0)] = 0.1
    """Size of the Fourier weights before training; at 1 a mode keeps its variance."""
    readout_width: Count = 128
    """Hidden channels of the pointwise readout."""


class FFNO(LiftedOperator):
    """The operator of the file's equations."""

    name = "ffno"
    cuts_space = True
    config: FFNOConfig

    def _build(self) -> None:
        super()._build()
        signature, config = self.signature, self.config
        width, hidden = config.width, config.mlp_ratio * config.width
        sets = 1 if config.share_weights else config.num_layers
        bases: list[Basis] = ["fourier"] * signature.space_dims
        self.spectral = nn.ModuleList(
            AxialSpectral(width, config.num_modes, bases, gates=False, gain=config.gain) for _ in range(sets)
        )
        self.feed_forward = nn.ModuleList(
            nn.Sequential(PointwiseLinear(width, hidden), nn.ReLU(), PointwiseLinear(hidden, width))
            for _ in range(config.num_layers)
        )
        if config.weight_norm:
            for layer in [part for part in self.modules() if isinstance(part, PointwiseLinear)]:
                weight_norm(layer)

    @force_fp32
    def features(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The residual layers."""
        layers = []
        for number, (widen, _, narrow) in enumerate(cast(Sequence[Sequence[PointwiseLinear]], self.feed_forward)):
            spectral = cast(AxialSpectral, self.spectral[0 if self.config.share_weights else number])
            network = Network(widen.weight, widen.bias[:, None], None, "relu", narrow.weight, narrow.bias)
            layers.append(ResidualLayer(spectral, (), network))
        return residual_layers(field, axes, layers)
