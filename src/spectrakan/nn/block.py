"""One layer of the trunk: a spectral operator, squeeze-excitation on its output, and a pointwise path.

    plain     v -> SE(K v)                    the paper, to the letter
    skip      v -> SE(K v) + W v + b          with a pointwise path, so that high frequencies pass
    residual  v -> v + FF(SE(K v))            with a pointwise feed-forward network
    SE(v)_c = a_c v_c,     a = sigmoid(W_2 relu(W_1 s + b_1) + b_2),     s_c the mean over space of v_c

The nonlinearity between layers belongs to the trunk. A condition from the token (`nn/conditioning`) multiplies modes
in K, and scales and shifts what enters a nonlinearity: the hidden channels of FF, or the block's output.
Shapes: fields `(channel, batch, *space)`.
"""

import math
from collections.abc import Sequence
from typing import Literal, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.config import settings
from spectrakan.nn.axis import Axis, mean_over
from spectrakan.nn.conditioning import UNCONDITIONED, Condition
from spectrakan.nn.feed_forward import Network, feed_forward
from spectrakan.nn.joint_spectral import FourierLayer
from spectrakan.nn.pointwise import pointwise
from spectrakan.nn.residual import ResidualLayer, residual_layers
from spectrakan.nn.spectral import AxialSpectral, Factors
from spectrakan.numerics.fourier import Basis

BlockKind = Literal["plain", "skip", "residual"]
Mixing = Literal["axial", "joint"]
SqueezeKind = Literal["none", "plain", "open"]
REDUCTION = 4
"""Channels over the width of the bottleneck (r)."""
OPEN = 0.9
"""Scale of an `open` squeeze-excitation before training."""


@settings
class BlockSettings:
    """What the blocks of one branch have in common."""

    width: int
    """Channels of the field."""
    num_modes: int
    """Modes kept along each axis."""
    bases: tuple[Basis, ...]
    """Basis of the transform along each axis."""
    kind: BlockKind = "skip"
    """Which of the three forms of the file's head."""
    mixing: Mixing = "axial"
    """Modes along each axis by itself (the paper), or low modes of all axes together."""
    gates: bool = True
    """Whether each mode of an axial layer has a learnable gate."""
    squeeze_excite: SqueezeKind = "open"
    """Squeeze-excitation on the spectral output; see `SqueezeExcite`."""
    mlp_ratio: int = 2
    """Hidden channels of a residual block's feed-forward network over `width`."""
    activation: str = "gelu"
    """Nonlinearity between layers, and of a residual block's feed-forward network."""


class SqueezeExcite(nn.Module):
    """The scale a of every channel from its mean over space.

    `plain` is the paper's: no biases and a bottleneck of width / r, so that a fresh layer halves its input. `open`
    has biases, a bottleneck of at least 8 and starts at `OPEN`.
    """

    def __init__(self, width: int, kind: SqueezeKind = "open") -> None:
        super().__init__()
        is_open = kind == "open"
        narrow = max(8 if is_open else 1, width // REDUCTION)
        self.squeeze = nn.Linear(width, narrow, bias=is_open)
        self.excite = nn.Linear(narrow, width, bias=is_open)
        if is_open:
            nn.init.constant_(self.excite.bias, math.log(OPEN / (1 - OPEN)))

    def forward(self, mean: Float[Tensor, "batch channel"]) -> Float[Tensor, "batch channel"]:
        """Means over space `(batch, channel)` to scales in (0, 1) of the same shape."""
        return torch.sigmoid(self.excite(F.relu(self.squeeze(mean))))


class Block(nn.Module):
    """A layer as in the file's head."""

    def __init__(self, config: BlockSettings) -> None:
        super().__init__()
        width, modes, bases = config.width, config.num_modes, config.bases
        self.activation_name = config.activation
        joint, residual = config.mixing == "joint", config.kind == "residual"
        self.axial = None if joint else AxialSpectral(width, modes, bases, gates=config.gates)
        self.joint = FourierLayer(width, modes, bases, pointwise=False) if joint else None
        squeeze = config.squeeze_excite
        self.squeeze_excite = None if squeeze == "none" else SqueezeExcite(width, squeeze)
        self.pointwise = nn.Linear(width, width) if config.kind == "skip" else None
        self.widen = nn.Linear(width, config.mlp_ratio * width) if residual else None
        self.narrow = nn.Linear(config.mlp_ratio * width, width) if residual else None

    def forward(self, field: Tensor, axes: Sequence[Axis], condition: Condition = UNCONDITIONED) -> Tensor:
        """`(channel, batch, *space)` to the same shape, under a condition from the token."""
        if (layer := self.residual_layer(condition)) is not None:
            return residual_layers(field, axes, [layer])
        combined = self._combined(field, axes, condition.factors)
        if self.widen is None:
            return condition.applied(combined)
        return feed_forward(combined, self._network(condition), field)

    def residual_layer(self, condition: Condition) -> ResidualLayer | None:
        """The block as `nn/residual` takes it; None of another form."""
        if self.widen is None or self.axial is None or self.squeeze_excite is not None:
            return None
        return ResidualLayer(self.axial, condition.factors, self._network(condition))

    def _network(self, condition: Condition) -> Network:
        """The feed-forward network of a residual block."""
        first, last = cast(nn.Linear, self.widen), cast(nn.Linear, self.narrow)
        shift, scale = first.bias[:, None], None
        if condition.scale is not None and condition.shift is not None:
            scale = condition.scale.T
            shift = torch.addcmul(condition.shift.T, scale, shift)
        return Network(first.weight, shift, scale, self.activation_name, last.weight, last.bias)

    def _combined(self, field: Tensor, axes: Sequence[Axis], factors: Factors) -> Tensor:
        """Spectral operator, squeeze-excitation and pointwise path."""
        if self.axial is not None:
            path, scale = self.pointwise, self.squeeze_excite
            return cast(Tensor, self.axial(field, axes, factors, pointwise=path, scale=scale))
        spectral: Tensor = cast(FourierLayer, self.joint)(field, axes)
        if self.squeeze_excite is not None:
            scales = self.squeeze_excite(mean_over(spectral, axes).T).T
            spectral = spectral * scales.view(*scales.shape, *[1] * len(axes))
        if self.pointwise is None:
            return spectral
        return spectral + pointwise(self.pointwise.weight, self.pointwise.bias, field)
