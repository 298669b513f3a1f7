"""AMFNO: the multi-scale, gated, axis-wise Fourier trunk of SpectraKAN, by itself.

f = F_fine(u) + U_s F_coarse(D_s u),     u_next(x) = R(f(x))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.operator import Operator, Predict
from spectrakan.models.refining import RefiningOperator
from spectrakan.nn.axis import Axis
from spectrakan.nn.block import BlockKind, BlockSettings, Mixing
from spectrakan.nn.embedding import channels_first, channels_last
from spectrakan.nn.lift import trust_by_age
from spectrakan.nn.multiscale import Branch, MultiscaleTrunk
from spectrakan.nn.readout import Readout
from spectrakan.numerics.float64 import to_float64
from spectrakan.numerics.fourier import Basis

Count = Annotated[int, Field(ge=1)]
BASIS_OF_BOUNDARY: dict[str, Basis] = {
    "periodic": "fourier",
    "wall": "extended",
    "outflow": "fourier",
    "dirichlet": "extended",
}
UNKNOWN_BOUNDARY_BASIS: Basis = "fourier"
EDGED = {"wall", "dirichlet"}
"""Boundaries that make places along an axis differ."""
LEAST_DECAY = 0.3
"""Trust that a frame has at least in what came before it; found on validation data of compressible flow."""


@settings
class AMFNOConfig:
    """Choices of the trunk and its readout; symbols of the paper in parentheses."""

    width: Count = 32
    """Channels of the features (d, C_fno)."""
    num_modes: Count = 12
    """Modes along each axis in the fine branch (m)."""
    num_layers: Count = 4
    """Layers of the fine branch (L)."""
    coarse: bool = True
    """Whether there is a coarse branch."""
    coarse_num_modes: Count = 8
    """Modes along each axis in the coarse branch."""
    coarse_num_layers: Count = 4
    """Layers of the coarse branch."""
    stride: Annotated[int, Field(ge=2)] = 2
    """How many fine cells make a coarse one along each axis (s)."""
    activation: Literal["gelu", "silu", "relu"] = "gelu"
    """Nonlinearity between layers (sigma)."""
    block: BlockKind = "skip"
    """`plain` (the paper's letter), `skip` (with a pointwise path) or `residual`."""
    factor: Count = 2
    """Hidden channels of a residual block's feed-forward network over `width`."""
    axes: Literal["sum", "sequential"] = "sum"
    """Whether axes are transformed side by side and summed, or one after the other."""
    gates: bool = True
    """Whether each mode has a learnable gate (gamma)."""
    excitation: bool = True
    """Whether squeeze-excitation scales each spectral output."""
    excitation_start: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """Scale of squeeze-excitation before training; 0.5 in the paper, which has no biases."""
    basis: Literal["auto", "fourier", "cosine", "sine", "extended"] | tuple[Basis, ...] = "auto"
    """Basis of the transforms: one for all axes, one for each, or by the signature's boundary."""
    mixing: Mixing = "axial"
    """Whether the fine branch mixes modes along each axis, low modes of all axes jointly, or both."""
    coarse_mixing: Mixing = "joint"
    """The same for the coarse branch, where joint modes are few and cheap."""
    memory_decay: Annotated[float, Field(gt=0, le=1)] | Literal["auto"] = "auto"
    """How much less the lift trusts a frame than the one after it, before training (q); 1 in the paper. "auto" is the
    correlation of one increment with the next in the training data."""
    coordinates: Literal["all", "edged"] = "all"
    """Axes along which the lift sees where cells are: `all`, or those with walls or held edges, for elsewhere the
    equations are the same in all places."""
    coarser_cells: Literal["direct", "refine"] = "direct"
    """Whether cells coarser than those of training are taken as they come, or cut into those of training first."""
    answer_error: Annotated[float, Field(ge=0)] = 0.0
    """Relative error that an answer is expected to have in every mode (e): wavelengths in which training answers are
    smaller are left out, smoothly (`nn/answer_gates`); 0: all stay."""
    readout_width: Count = 64
    """Hidden channels of the pointwise readout."""
    predict: Predict = "auto"
    """`increment` to the last frame, `departure` from the mean training field, the field itself (`direct`), or by
    the signature: increments where the field evolves, else departures."""


class AMFNO(RefiningOperator):
    """The trunk with a pointwise readout; see the file's equation."""

    name = "amfno"
    config: AMFNOConfig

    def __init__(self, signature: OperatorSignature, config: AMFNOConfig) -> None:
        super().__init__(
            signature,
            config,
            predict=prediction_of(signature, config),
            refines=config.coarser_cells == "refine",
            answer_error=config.answer_error,
            gate_modes=config.num_modes,
        )
        self.trunk = build_trunk(signature, config)
        self.readout = Readout(config.width, 0, config.readout_width, signature.out_channels)

    def prepare(self, windows: Iterable[Window]) -> None:
        """What every operator prepares, and the trust in old frames."""
        windows = list(windows)
        super().prepare(windows)
        fit_memory(self, self.trunk, self.config, windows)

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The trunk's features, read out cell by cell; parameters join as constant channels."""
        features = self.trunk(with_params(channels_first(history), params), axes)
        return channels_last(self.readout(features, None))


def prediction_of(signature: OperatorSignature, config: AMFNOConfig) -> Predict:
    """What the answers are added to: "auto" takes the last frame, or the mean field of a steady task."""
    if config.predict != "auto":
        return config.predict
    return "increment" if signature.evolves else "departure"


def build_trunk(signature: OperatorSignature, config: AMFNOConfig) -> MultiscaleTrunk:
    """The trunk that a config asks for, fitting the signature."""
    located = located_axes(signature, config)
    decay = 1.0 if isinstance(config.memory_decay, str) else config.memory_decay
    trust = trust_by_age(signature.history, signature.in_channels, signature.num_params + len(located), decay)
    fine, coarse = fine_settings(signature, config), coarse_settings(signature, config)
    return MultiscaleTrunk(
        Branch(trust, config.num_layers, fine, located),
        Branch(trust, config.coarse_num_layers, coarse, located) if config.coarse else None,
        config.stride,
    )


def located_axes(signature: OperatorSignature, config: AMFNOConfig) -> tuple[int, ...]:
    """Axes whose coordinates the lift sees; an axis of unknown boundary counts as edged."""
    boundary = signature.boundary or ("wall",) * signature.space_dims
    everywhere = config.coordinates == "all"
    return tuple(place for place, kind in enumerate(boundary) if everywhere or kind in EDGED)


@torch.no_grad()
def fit_memory(model: Operator, trunk: MultiscaleTrunk, config: AMFNOConfig, windows: Sequence[Window]) -> None:
    """Trust old frames as far as their increments foretell the next one, where `memory_decay` is "auto".

    q is the correlation of the last increment of a window with the one that follows, the mean over fields, at least
    `LEAST_DECAY`: near 1 where the field creeps, small where waves pass within a frame.
    """
    facts = model.signature
    if config.memory_decay != "auto" or facts.history == 1 or not facts.evolves or not windows:
        return
    moments = torch.zeros(3, facts.in_channels, dtype=torch.float64)
    for window in windows:
        frames = to_float64(torch.cat([window.inputs[:, -2:], window.targets[:, :1]], dim=1))
        before, after = frames.diff(dim=1).unbind(1)
        pairs = [before * after, before.square(), after.square()]
        moments += torch.stack([pair.flatten(0, -2).sum(0) for pair in pairs]).to(moments)
    correlation = moments[0] / (moments[1] * moments[2]).sqrt().clamp_min(1e-300)
    decay = float(correlation.mean().clamp(LEAST_DECAY, 1.0))
    others = facts.num_params + len(trunk.fine.located)
    trust = trust_by_age(facts.history, facts.in_channels, others, decay)
    for branch in (trunk.fine, trunk.coarse):
        if branch is not None:
            branch.lift.trust.copy_(torch.tensor(trust))


def fine_settings(signature: OperatorSignature, config: AMFNOConfig) -> BlockSettings:
    """What the fine branch's blocks are."""
    return BlockSettings(
        width=config.width,
        num_modes=config.num_modes,
        bases=bases_of(signature, config),
        kind=config.block,
        factor=config.factor,
        activation=config.activation,
        mixing=config.mixing,
        gates=config.gates,
        excitation=config.excitation,
        excitation_start=config.excitation_start,
        sequential=config.axes == "sequential",
    )


def coarse_settings(signature: OperatorSignature, config: AMFNOConfig) -> BlockSettings:
    """What the coarse branch's blocks are: the fine ones but for modes and mixing."""
    return BlockSettings(
        **{
            **vars(fine_settings(signature, config)),
            "num_modes": config.coarse_num_modes,
            "mixing": config.coarse_mixing,
        }
    )


def bases_of(signature: OperatorSignature, config: AMFNOConfig) -> tuple[Basis, ...]:
    """The basis along each axis; "auto" follows the boundary, and takes Fourier where it is unknown."""
    if isinstance(config.basis, tuple):
        if len(config.basis) != signature.space_dims:
            raise ConfigError(f"basis names {len(config.basis)} axes, the signature has {signature.space_dims}")
        return config.basis
    if config.basis != "auto":
        return (config.basis,) * signature.space_dims
    if not signature.boundary:
        return (UNKNOWN_BOUNDARY_BASIS,) * signature.space_dims
    return tuple(BASIS_OF_BOUNDARY[kind] for kind in signature.boundary)


def with_params(field: Tensor, params: Tensor | None) -> Tensor:
    """Append each parameter as a channel that is constant in space."""
    if params is None:
        return field
    constant = params.T.view(*params.T.shape, *[1] * (field.ndim - 2)).expand(-1, -1, *field.shape[2:])
    return torch.cat([field, constant])
