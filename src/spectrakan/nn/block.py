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
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.config import settings
from spectrakan.nn.axis import Axis, AxisTransform, axis_transforms, mean_over, over_parts
from spectrakan.nn.conditioning import UNCONDITIONED, Condition
from spectrakan.nn.execution import force_fp32, fused
from spectrakan.nn.feed_forward import feed_forward
from spectrakan.nn.joint_spectral import FourierLayer
from spectrakan.nn.pointwise import pointwise
from spectrakan.nn.products import analyse, synthesise
from spectrakan.nn.residual import ResidualBlocks
from spectrakan.nn.spectral import AxialSpectral, Factors
from spectrakan.numerics.fourier import Basis
from spectrakan.numerics.quadrature import weighted_mean

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

    @force_fp32
    def forward(self, field: Tensor, axes: Sequence[Axis], condition: Condition = UNCONDITIONED) -> Tensor:
        """`(channel, batch, *space)` to the same shape, under a condition from the token."""
        if self.widen is None or self.narrow is None:
            return condition.applied(self._combined(field, axes, condition.factors))
        if self.fuses(field, axes):
            return residual_blocks(field, [self.arguments(field, axes, condition)])
        first, shift, scale, name, last, bias = self._network(condition)
        combined = self._combined(field, axes, condition.factors)
        return feed_forward(combined, first, shift, scale, name, last, bias, field)

    def fuses(self, field: Tensor, axes: Sequence[Axis]) -> bool:
        """Whether this is a residual block that takes its form as one operation, alone or in a chain."""
        plain = self.widen is None or self.axial is None or self.squeeze_excite is not None
        return not plain and cast(AxialSpectral, self.axial).fuses(field, axes)

    def arguments(self, field: Tensor, axes: Sequence[Axis], condition: Condition) -> list[Any]:
        """What `nn/residual` takes of this block."""
        axial = cast(AxialSpectral, self.axial)
        return [*self._network(condition), *axial.parts(field, axes, condition.factors)]

    def _network(self, condition: Condition) -> tuple[Any, ...]:
        """What `feed_forward` takes of this block."""
        first, last = cast(nn.Linear, self.widen), cast(nn.Linear, self.narrow)
        shift, scale = first.bias[:, None], None
        if condition.scale is not None and condition.shift is not None:
            scale = condition.scale.T
            shift = torch.addcmul(condition.shift.T, scale, shift)
        return first.weight, shift, scale, self.activation_name, last.weight, last.bias

    def _combined(self, field: Tensor, axes: Sequence[Axis], factors: Factors) -> Tensor:
        """Spectral operator, squeeze-excitation and pointwise path."""
        if self.axial is not None:
            return self._axial_path(self.axial, field, axes, factors)
        spectral: Tensor = cast(FourierLayer, self.joint)(field, axes)
        if self.squeeze_excite is not None:
            scale = self.squeeze_excite(mean_over(spectral, axes).T).T
            spectral = spectral * scale.view(*scale.shape, *[1] * len(axes))
        if self.pointwise is None:
            return spectral
        return spectral + pointwise(self.pointwise.weight, self.pointwise.bias, field)

    def _axial_path(self, axial: AxialSpectral, field: Tensor, axes: Sequence[Axis], factors: Factors) -> Tensor:
        """Spectral operator, squeeze-excitation and pointwise path without a field of full size in between.

        The mean that squeeze-excitation needs is the mean of the synthesis, known from the coefficients; its
        scale multiplies the coefficients; and the synthesis adds to the pointwise product in place.
        """
        transforms = axis_transforms(axes, axial.bases, axial.num_modes, field)
        analyses = [transform.analysis for transform in transforms]
        start, *rows = analyse(field, self.pointwise, *analyses)
        rows = [axis.summed(row) for axis, row in zip(axes, rows, strict=True)]
        mixed = axial.mix(rows, factors)
        if self.squeeze_excite is not None:
            scale = self.squeeze_excite(_mean_of_synthesis(mixed, transforms, axes).T).T
            mixed = [row * scale.view(*scale.shape, *[1] * (row.ndim - 3)) for row in mixed]
        return synthesise(start, mixed, [transform.synthesis for transform in transforms])


def residual_blocks(field: Tensor, arguments: Sequence[Sequence[Any]]) -> Tensor:
    """Residual blocks one after the other, given what each has."""
    given = [each for block in arguments for each in block]
    return cast(Tensor, fused(ResidualBlocks, len(arguments), field, *given))


def _mean_of_synthesis(mixed: Sequence[Tensor], transforms: Sequence[AxisTransform], axes: Sequence[Axis]) -> Tensor:
    """Mean over space of the sum of syntheses, from the coefficients: `(channel, batch)`."""
    parts: list[Tensor] = []
    cut: list[Tensor] = []
    for axis, (rows, transform) in enumerate(zip(mixed, transforms, strict=True)):
        along = rows[0] if transform.one_mean else torch.tensordot(transform.mean, rows, dims=([0], [0]))
        others = [other.weights for number, other in enumerate(transforms) if number != axis]
        # Coefficients along a cut axis are known to all processes, those along other axes lie on this one's cells.
        (parts if axes[axis].space is None else cut).append(weighted_mean(along, others))
    whole = [over_parts(torch.stack(parts).sum(0), axes)] if parts else []
    return torch.stack([*whole, *cut]).sum(0)
