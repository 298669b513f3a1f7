"""One layer of the trunk: a spectral operator, squeeze-excitation on its output, and a pointwise path.

    plain     v -> SE(K v)                    the paper, to the letter
    skip      v -> SE(K v) + W v + b          with a pointwise path, so that high frequencies get through
    residual  v -> v + FF(SE(K v))            with a pointwise feed-forward network

The nonlinearity between layers is the trunk's. Shapes: fields `(channel, batch, *space)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from spectrakan.config import settings
from spectrakan.nn.activation import activate
from spectrakan.nn.axis import Axis, AxisTransform
from spectrakan.nn.embedding import added_pointwise, pointwise
from spectrakan.nn.feed_forward import add_rectified
from spectrakan.nn.joint_spectral import JointSpectral
from spectrakan.nn.precision import unmixed
from spectrakan.nn.products import analyse, synthesise
from spectrakan.nn.spectral import AxialSpectral
from spectrakan.nn.squeeze_excite import SqueezeExcite
from spectrakan.numerics.fourier import Basis
from spectrakan.numerics.quadrature import weighted_mean

BlockKind = Literal["plain", "skip", "residual"]
Mixing = Literal["axial", "joint", "both"]


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
    """Modes along each axis by itself (the paper), low modes of all axes together, or both, summed."""
    gates: bool = True
    """Whether each mode has a learnable gate."""
    excitation: bool = True
    """Whether squeeze-excitation scales the spectral output."""
    excitation_start: float = 0.9
    """Scale of squeeze-excitation before training."""
    factor: int = 2
    """Hidden channels of a residual block's feed-forward network over `width`."""
    activation: str = "gelu"
    """Nonlinearity between layers, and of a residual block's feed-forward network."""
    sequential: bool = False
    """Whether the axes are transformed one after the other instead of summed."""


class Block(nn.Module):
    """A layer as in the file's head."""

    def __init__(self, choices: BlockSettings) -> None:
        super().__init__()
        width = choices.width
        self.kind, self.activation_name = choices.kind, choices.activation
        self.axial = (
            AxialSpectral(width, choices.num_modes, choices.bases, gates=choices.gates, sequential=choices.sequential)
            if choices.mixing != "joint"
            else None
        )
        self.joint = JointSpectral(width, choices.num_modes, choices.bases) if choices.mixing != "axial" else None
        self.excitation = SqueezeExcite(width, start=choices.excitation_start) if choices.excitation else None
        self.pointwise = nn.Linear(width, width) if choices.kind == "skip" else None
        self.widen = nn.Linear(width, choices.factor * width) if choices.kind == "residual" else None
        self.narrow = nn.Linear(choices.factor * width, width) if choices.kind == "residual" else None

    @unmixed
    def forward(self, field: Tensor, axes: Sequence[Axis], gate_factors: Sequence[Tensor] | None = None) -> Tensor:
        """`(channel, batch, *space)` to the same shape."""
        if self.axial is not None and self.joint is None and not self.axial.sequential:
            combined = self._axial_path(self.axial, field, axes, gate_factors)
        else:
            combined = self._any_path(field, axes, gate_factors)
        if self.widen is None or self.narrow is None:
            return combined
        if self.activation_name == "relu":
            return add_rectified(field, combined, self.widen, self.narrow)
        hidden = activate(self.activation_name, pointwise(self.widen.weight, self.widen.bias, combined))
        return added_pointwise(field, self.narrow.weight, self.narrow.bias, hidden)

    def _axial_path(
        self,
        axial: AxialSpectral,
        field: Tensor,
        axes: Sequence[Axis],
        gate_factors: Sequence[Tensor] | None,
    ) -> Tensor:
        """Spectral operator, excitation and pointwise path without a field of full size in between.

        The mean that squeeze-excitation needs is the mean of the synthesis, known from the coefficients; its
        scale goes onto the coefficients; and the synthesis adds to the pointwise product in place.
        """
        transforms = axial.transforms(axes, field)
        analyses = [transform.analysis for transform in transforms]
        if self.pointwise is None:
            start, rows = None, list(analyse(field, None, None, *analyses))
        else:
            start, *rows = analyse(field, self.pointwise.weight, self.pointwise.bias, *analyses)
        mixed = axial.mix(rows, gate_factors)
        if self.excitation is not None:
            scale = self.excitation(_mean_of_synthesis(mixed, transforms).T).T
            mixed = [row * scale.view(*scale.shape, *[1] * (row.ndim - 3)) for row in mixed]
        return synthesise(start, mixed, [transform.synthesis for transform in transforms])

    def _any_path(self, field: Tensor, axes: Sequence[Axis], gate_factors: Sequence[Tensor] | None) -> Tensor:
        """The same as it is written on paper, for every kind of mixing."""
        spectral = torch.zeros((), dtype=field.dtype, device=field.device)
        if self.axial is not None:
            spectral = spectral + self.axial(field, axes, gate_factors)
        if self.joint is not None:
            spectral = spectral + self.joint(field, axes)
        if self.excitation is not None:
            mean = weighted_mean(spectral, [axis.weights.to(field) for axis in axes])
            scale = self.excitation(mean.T).T
            spectral = spectral * scale.view(*scale.shape, *[1] * len(axes))
        if self.pointwise is None:
            return spectral
        return spectral + pointwise(self.pointwise.weight, self.pointwise.bias, field)


def _mean_of_synthesis(mixed: Sequence[Tensor], transforms: Sequence[AxisTransform]) -> Tensor:
    """Mean over space of the sum of syntheses, from the coefficients: `(channel, batch)`."""
    parts = []
    for axis, (rows, transform) in enumerate(zip(mixed, transforms, strict=True)):
        along = rows[0] if transform.one_mean else torch.tensordot(transform.mean, rows, dims=([0], [0]))
        others = [other.weights for place, other in enumerate(transforms) if place != axis]
        parts.append(weighted_mean(along, others))
    return torch.stack(parts).sum(0)
