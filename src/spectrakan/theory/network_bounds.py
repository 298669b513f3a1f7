"""How the trunk's features and the token move: values at the centre, and the set of Jacobians over the ball.

Spectral layers, lifts, averages and interpolation are linear and pass without loss. What is bounded:
    nonlinearity        its slope over the interval that each cell and channel can take,
    squeeze-excitation  y = a(mean k) k, a product of two signals, a behind ReLU and sigmoid: D(ak) = a Dk + k Da,
    spread              sigma(u) = (||u - mean||² + eps)^{1/2} has the gradient n = (u - mean) / sigma, shorter than
                        one, and n moves no faster than 1 / sigma; in a ball of radius r, sigma >= sigma_0 - r,
    KAN layer           the slopes of its edges, S + E with |E_ji| <= D_ji over the intervals of its inputs:
                        (E x)_j lies in g² diag(sum_i D_ji),     g = ||diag(sum_j D_ji)^{1/2} x||.
Shapes: one sample; fields `(channel, *space)`, vectors `(dim,)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from spectrakan.nn.axis import Axis
from spectrakan.nn.block import Block, SqueezeExcite
from spectrakan.nn.embedding import with_coordinates
from spectrakan.nn.kan import KAN, KANLayer
from spectrakan.nn.multiscale import Branch, MultiscaleTrunk, downsample, upsample
from spectrakan.nn.pointwise import pointwise
from spectrakan.nn.token import GlobalToken, centre_value, space_mean, space_spread
from spectrakan.numerics.quadrature import cell_volumes
from spectrakan.theory.kan_bounds import layers_of, slope_matrices
from spectrakan.theory.signal import Signal
from spectrakan.theory.slopes import edge_pieces, enclose
from spectrakan.theory.tangent import Tangent, Variation, side_by_side

SPREAD_FLOOR = 1e-6
"""The eps that `space_spread` adds under its root."""


def trunk_signal(trunk: MultiscaleTrunk, field: Signal, axes: Sequence[Axis]) -> Signal:
    """Features of a signal of inputs `(channels, *space)`."""
    fine = _branch_signal(trunk.fine, field, axes)
    if trunk.coarse is None:
        return fine
    larger = [axis.coarse(trunk.stride) for axis in axes]
    small = field.mapped(lambda values: downsample(values, axes, larger))
    small = _branch_signal(trunk.coarse, small, larger)
    return fine + small.mapped(lambda values: upsample(values, axes, larger))


def _branch_signal(branch: Branch, field: Signal, axes: Sequence[Axis]) -> Signal:
    fields_part = branch.lift.weight[:, : field.value.shape[0]]
    located = with_coordinates(field.value[:, None], axes, branch.located)
    lifted = pointwise(branch.lift.weight, branch.lift.bias, located)
    signal = replace(field, value=lifted[:, 0], tangent=field.tangent.pointwise(fields_part))
    for number, block in enumerate(branch.blocks):
        if number and branch.between:
            signal = signal.activated(branch.activation_name)
        signal = _block_signal(cast(Block, block), signal, axes)
    return signal


def _block_signal(block: Block, signal: Signal, axes: Sequence[Axis]) -> Signal:
    """One layer of the trunk, as in the head of `nn/block`."""
    spectral = signal.mapped(lambda field: block.spectral(field, axes))
    if block.squeeze_excite is not None:
        combined = _excited(block, signal, spectral, _excitation(block.squeeze_excite, spectral, axes), axes)
    else:
        combined = spectral if block.pointwise is None else spectral + signal.dense(block.pointwise)
    if block.widen is None or block.narrow is None:
        return combined
    return signal + combined.dense(block.widen).activated(block.activation_name).dense(block.narrow)


def _excited(block: Block, signal: Signal, spectral: Signal, scale: Signal, axes: Sequence[Axis]) -> Signal:
    """A K v [+ W v + b]; both paths are linear in the same v and are taken together."""
    layer = block.pointwise
    # The channel of every entry, `(dim,)`.
    channels = torch.arange(spectral.value.shape[0]).repeat_interleave(spectral.value[0].numel())
    low, high = (end[channels] for end in scale.interval())
    centre = (low + high) / 2

    def linear(field: Tensor) -> Tensor:
        scaled = centre.view(spectral.value.shape)[:, None] * block.spectral(field, axes)
        return scaled if layer is None else scaled + pointwise(layer.weight, None, field)

    box = centre.abs() * spectral.tangent.box
    value = spectral.value * scale.value.view(-1, *[1] * len(axes))
    if layer is not None:
        box = box + signal.tangent.box_behind(layer.weight)
        value = value + pointwise(layer.weight, layer.bias, signal.value[:, None])[:, 0]
    tangent = signal.tangent.through(linear).boxed(box).widened(spectral.tangent.varied((high - low) / 2))
    by_scale = scale.tangent.picked(channels, spectral.tangent.shape).multiplied(*spectral.interval())
    return replace(signal, value=value, tangent=tangent + by_scale)


def _excitation(excitation: SqueezeExcite, spectral: Signal, axes: Sequence[Axis]) -> Signal:
    volumes = cell_volumes([axis.weights for axis in axes]).to(spectral.value)
    space = list(range(2, 2 + volumes.ndim))
    mean = spectral.mapped(lambda field: (field * volumes).sum(space))
    hidden = mean.dense(excitation.squeeze).activated("relu")
    return hidden.dense(excitation.excite).activated("sigmoid")


def summary_signal(token: GlobalToken, field: Signal, params: Tensor | None, axes: Sequence[Axis]) -> Signal:
    """Z = P(u) of a signal `(channels, *space)`, the parameters `(params,)` after it."""
    signals = []
    if token.pool != "mean":
        signals.append(field.mapped(lambda values: centre_value(_as_history(values), axes)[..., 0].T))
    if token.pool != "center":
        signals.append(field.mapped(lambda values: space_mean(_as_history(values), axes)[..., 0].T))
    if token.pool == "center+mean+std":
        signals.append(_spread(field, axes))
    value = torch.cat([signal.value for signal in signals])
    whole = Signal(value, side_by_side([signal.tangent for signal in signals]), field.stage)
    return whole if params is None else whole.appended(params)


def token_signal(network: nn.Module, summary: Signal) -> Signal:
    """T = Phi(z) for a KAN, an MLP or the identity."""
    if isinstance(network, KAN):
        for layer in layers_of(network):
            summary = _kan_layer_signal(layer, summary)
        return summary
    if isinstance(network, nn.Sequential):
        hidden = summary.dense(cast(nn.Linear, network[0])).activated("silu")
        return hidden.dense(cast(nn.Linear, network[2]))
    return summary


def _kan_layer_signal(layer: KANLayer, signal: Signal) -> Signal:
    low, high = signal.interval()
    slopes, spread = slope_matrices(enclose(edge_pieces(layer), low[:, None], high[:, None], 1))
    centre, half = slopes[0], spread[0]
    # g is the norm of the signal weighted by the columns of D.
    root, moves = half.sum(0).sqrt(), signal.tangent
    weighted = Tangent(
        root[:, None] * moves.middle, root[:, None] * moves.spread * root, root * moves.box, moves.shape
    )
    variation = Variation(weighted.bound().square() * half.sum(1), half @ moves.reach())
    return replace(signal, value=layer(signal.value[None])[0], tangent=moves.times(centre).widened(variation))


def _as_history(field: Tensor) -> Tensor:
    """`(channels, batch, *space)` -> `(batch, channels, *space, 1)`: one field, each channel a frame."""
    return field.movedim(0, 1)[..., None]


def _spread(field: Signal, axes: Sequence[Axis]) -> Signal:
    """The standard deviation of each channel; `field` is the input, its frames times factors of at most one."""
    history = _as_history(field.value[:, None])
    sigma, mean = (pool(history, axes)[0, :, 0] for pool in (space_spread, space_mean))
    volumes = cell_volumes([axis.weights for axis in axes]).to(sigma).flatten()
    direction = volumes * (field.value.flatten(1) - mean[:, None]) / sigma[:, None]
    plain = (sigma.square() - SPREAD_FLOOR).clamp_min(0).sqrt()
    least = ((plain - field.stage.radius).clamp_min(0).square() + SPREAD_FLOOR).sqrt()
    turned = (field.stage.radius / least).clamp_max(2.0)
    variation = Variation(turned.square() * len(sigma), turned)
    tangent = field.tangent.times(torch.block_diag(*direction)).widened(variation)
    return Signal(sigma, tangent, field.stage)
