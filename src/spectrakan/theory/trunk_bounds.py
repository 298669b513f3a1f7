"""How the trunk's features move with the input: values at the centre, and the set of Jacobians over the ball.

Spectral layers, lifts, averages and interpolation are linear and pass without loss. What is bounded:
    nonlinearity        its slope over the interval that each cell and channel can meet,
    squeeze-excitation  y = a(mean k) k, a product of two signals, a behind ReLU and sigmoid,
    conditioned gates   row of coefficients times 1 + tanh(W t + b) / 2, a product likewise.
Shapes: one sample; values `(channel, *space)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from spectrakan.nn.axis import Axis
from spectrakan.nn.block import Block
from spectrakan.nn.embedding import pointwise, with_coordinates
from spectrakan.nn.multiscale import Branch, MultiscaleTrunk, downsample, upsample
from spectrakan.nn.spectral import AxialSpectral, ModeMixing
from spectrakan.nn.squeeze_excite import SqueezeExcite
from spectrakan.numerics.quadrature import cell_volumes
from spectrakan.theory.signal import Signal
from spectrakan.theory.tangent import Linear

Gates = Sequence[Sequence[Signal]]
"""Factors of the gates by layer and axis."""


def trunk_signal(trunk: MultiscaleTrunk, field: Signal, axes: Sequence[Axis], gates: Gates | None) -> Signal:
    """Features of a signal of inputs `(channels, *space)`."""
    split = len(trunk.fine.blocks)
    fine = branch_signal(trunk.fine, field, axes, gates[:split] if gates else None)
    if trunk.coarse is None:
        return fine
    larger = [axis.coarse(trunk.stride) for axis in axes]
    small = field.mapped(lambda values: downsample(values, axes, larger, trunk.stride))
    small = branch_signal(trunk.coarse, small, larger, gates[split:] if gates else None)
    return fine + small.mapped(lambda values: upsample(values, axes, larger, trunk.stride))


def branch_signal(branch: Branch, field: Signal, axes: Sequence[Axis], gates: Gates | None) -> Signal:
    """Features of one branch."""
    channels = field.value.shape[0]
    fields_part = branch.lift.weight[:, :channels]
    placed = with_coordinates(field.value[:, None], axes, branch.located)
    lifted = pointwise(branch.lift.weight, branch.lift.bias, placed)
    signal = replace(field, value=lifted[:, 0], tangent=field.tangent.pointwise(fields_part))
    for number, block in enumerate(branch.blocks):
        if number and branch.between:
            signal = signal.activated(branch.activation_name)
        signal = block_signal(block, signal, axes, gates[number] if gates else None)
    return signal


def block_signal(block: nn.Module, signal: Signal, axes: Sequence[Axis], gates: Sequence[Signal] | None) -> Signal:
    """One layer of the trunk, as `Block` writes it on paper."""
    if not isinstance(block, Block):
        raise TypeError(f"expected a Block, got {type(block).__name__}")
    spectral = _spectral_signal(block, signal, axes, gates)
    scale = None if block.excitation is None else _excitation(block.excitation, spectral, axes)
    if block.pointwise is not None:
        return _with_pointwise(block, signal, spectral, scale, axes, gates)
    if scale is not None:
        spectral = spectral.scaled_by(scale, _channel_of(spectral))
    if block.widen is None or block.narrow is None:
        return spectral
    return signal + spectral.dense(block.widen).activated(block.activation_name).dense(block.narrow)


def _with_pointwise(
    block: Block,
    signal: Signal,
    spectral: Signal,
    scale: Signal | None,
    axes: Sequence[Axis],
    gates: Sequence[Signal] | None,
) -> Signal:
    """A K v + W v + b; where K is one linear map, both paths see the same v and are taken together."""
    layer = block.pointwise
    if layer is None:
        raise TypeError("this block has no pointwise path")
    if gates is not None or scale is None:
        path = spectral if scale is None else spectral.scaled_by(scale, _channel_of(spectral))
        return path + signal.dense(layer)
    places = _channel_of(spectral)
    low, high = (end[places] for end in scale.interval())
    centre = (low + high).view(spectral.value.shape)[:, None] / 2
    apply, weight = _spectral_map(block, axes), layer.weight
    tangent = signal.tangent.through(lambda field: centre * apply(field) + pointwise(weight, None, field))
    local = signal.tangent.box_behind(weight)
    if local is not None and spectral.tangent.box is not None:
        tangent = tangent.boxed(local + centre.flatten() * spectral.tangent.box)
    tangent = tangent.widened(spectral.tangent.varied((high - low) / 2)) + spectral.moved_by(scale, places)
    value = spectral.value * scale.value.view(-1, *[1] * len(axes))
    value = value + pointwise(weight, layer.bias, signal.value[:, None])[:, 0]
    return replace(signal, value=value, tangent=tangent)


def _channel_of(signal: Signal) -> Tensor:
    """The channel of every entry, `(dim,)`."""
    return torch.arange(signal.value.shape[0]).repeat_interleave(signal.value[0].numel())


def _spectral_map(block: Block, axes: Sequence[Axis]) -> Linear:
    """The spectral operator with its own gates."""
    layers = [layer for layer in (block.axial, block.joint) if layer is not None]
    return lambda field: torch.stack([layer(field, axes) for layer in layers]).sum(0)


def _spectral_signal(block: Block, signal: Signal, axes: Sequence[Axis], gates: Sequence[Signal] | None) -> Signal:
    axial, joint = block.axial, block.joint
    if gates is None or axial is None:
        return signal.mapped(_spectral_map(block, axes))
    total = _gated_signal(axial, signal, axes, gates)
    return total if joint is None else total + signal.mapped(lambda field: joint(field, axes))


def _gated_signal(axial: AxialSpectral, signal: Signal, axes: Sequence[Axis], gates: Sequence[Signal]) -> Signal:
    """The axial layer whose coefficients are scaled by gates that move with the input."""
    parts = []
    current = signal
    for place, (mixing, transform) in enumerate(zip(axial.mixing, axial.transforms(axes, signal.value), strict=True)):
        into, out = _along(transform.analysis, place), _along(transform.synthesis, place)
        rows = current.mapped(into)
        factors = gates[place]
        repeats = 2 if isinstance(mixing, ModeMixing) and mixing.complex else 1
        view = [1] * rows.value.ndim
        view[place + 1] = -1
        along = (torch.arange(rows.value.shape[place + 1]) // repeats).view(view)
        rows = rows.scaled_by(factors, along.expand(rows.value.shape).flatten())
        mixed = rows.mapped(_mixed(mixing, place)).mapped(out)
        parts.append(mixed)
        current = mixed if axial.sequential else signal
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return parts[-1] if axial.sequential else total


def _along(matrix: Tensor, place: int) -> Linear:
    """A matrix along one axis of `(channel, batch, *space)`."""
    return lambda field: torch.tensordot(matrix, field, dims=([1], [place + 2])).movedim(0, place + 2)


def _mixed(mixing: nn.Module, place: int) -> Linear:
    """The mode matrices on coefficients that lie along one axis."""

    def apply(field: Tensor) -> Tensor:
        mixed: Tensor = mixing(field.movedim(place + 2, 0).contiguous())
        return mixed.movedim(0, place + 2)

    return apply


def _excitation(excitation: SqueezeExcite, spectral: Signal, axes: Sequence[Axis]) -> Signal:
    volumes = cell_volumes([axis.weights for axis in axes]).to(spectral.value)
    space = list(range(2, 2 + volumes.ndim))
    mean = spectral.mapped(lambda field: (field * volumes).sum(space))
    hidden = mean.dense(excitation.squeeze).activated("relu")
    return hidden.dense(excitation.excite).activated("sigmoid")
