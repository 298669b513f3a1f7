"""F-FNO: the factorized Fourier neural operator; modes along each axis by themselves, in residual layers.

    v_0 = L [u, x],     v_{l+1} = v_l + T_l relu(S_l sum_a F_a^{-1}[W_{l,a} F_a v_l]),     u_next = Q sigma(Q' v_L)

Tran et al., Factorized Fourier Neural Operators, ICLR 2023; defaults are its 24 layers on the torus, with one set of
W for all layers and normed weights in S, T and L. Faults of the published code, mended here: its head takes the
last layer's branch instead of the sum v_L, so that the residual path ends blind, and has two linear maps with
nothing between, which are one. Its module is written for two axes; this is the same layer over any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import settings
from spectrakan.fields import OperatorSignature
from spectrakan.models.amfno import Count, with_params
from spectrakan.models.operator import Operator, Predict
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import channels_first, channels_last, with_coordinates
from spectrakan.nn.feed_forward import FeedForward, NormedLinear, PlainLinear
from spectrakan.nn.readout import Readout
from spectrakan.nn.spectral import AxialSpectral, ModeMixing


@settings
class FFNOConfig:
    """Choices of the operator; defaults are the paper's on the torus."""

    width: Count = 64
    """Channels of the features."""
    num_modes: Count = 16
    """Modes along each axis."""
    num_layers: Count = 24
    """Residual layers."""
    factor: Count = 4
    """Hidden channels of the feed-forward networks over `width`."""
    share_weights: bool = True
    """Whether all layers have the same Fourier weights W."""
    weight_norm: bool = True
    """Whether rows of pointwise matrices are stored as length and direction."""
    gain: Annotated[float, Field(gt=0)] = 0.1
    """Size of the Fourier weights before training; at 1 a mode keeps its variance."""
    readout_width: Count = 128
    """Hidden channels of the pointwise readout."""
    predict: Predict = "auto"
    """`increment` to the last frame, the frame itself (`direct`), or by the signature."""
    answer_error: Annotated[float, Field(ge=0)] = 0.0
    """Error that gates on the answer's modes expect (`nn/answer_gates`); 0, as published: no gates."""


class FFNO(Operator):
    """The operator of the file's equations."""

    name = "ffno"
    config: FFNOConfig

    def __init__(self, signature: OperatorSignature, config: FFNOConfig) -> None:
        super().__init__(
            signature,
            config,
            predict=config.predict,
            answer_error=config.answer_error,
            gate_modes=config.num_modes,
        )
        dims, width = signature.space_dims, config.width
        channels = signature.history * signature.in_channels + signature.num_params + dims
        linear = NormedLinear if config.weight_norm else PlainLinear
        self.lift = linear(channels, width)
        sets = 1 if config.share_weights else config.num_layers
        self.spectral = nn.ModuleList(_spectral(dims, config) for _ in range(sets))
        self.feed_forward = nn.ModuleList(
            FeedForward(linear(width, config.factor * width), linear(config.factor * width, width))
            for _ in range(config.num_layers)
        )
        self.readout = Readout(width, 0, config.readout_width, signature.out_channels)

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Lift, residual layers, readout at unit scale."""
        field = self.lift(with_coordinates(with_params(channels_first(history), params), axes))
        for number, feed_forward in enumerate(self.feed_forward):
            spectral = self.spectral[0 if self.config.share_weights else number]
            field = field + feed_forward(spectral(field, axes))
        return channels_last(self.readout(field, None))


def _spectral(dims: int, config: FFNOConfig) -> AxialSpectral:
    layer = AxialSpectral(config.width, config.num_modes, ["fourier"] * dims, gates=False)
    with torch.no_grad():
        for mixing in layer.mixing:
            if isinstance(mixing, ModeMixing):
                mixing.weight.mul_(config.gain)
    return layer
