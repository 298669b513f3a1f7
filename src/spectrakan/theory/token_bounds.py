"""How the token moves with the input: the summary P, then the network on it.

Centre and mean are linear. The spread sigma(u) = (||u - mean||² + eps)^{1/2} has the gradient n = (u - mean) / sigma,
shorter than one, and n moves no faster than 1 / sigma; over a ball of radius r, sigma >= sigma_0 - r.
A KAN layer multiplies by the slopes of its edges, S + E with |E_ji| <= D_ji over the intervals they meet:
    (E x)_j = sum_i E_ji x_i  lies in  g² diag(sum_i D_ji),     g = ||diag(sum_j D_ji)^{1/2} x||.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from spectrakan.nn.axis import Axis
from spectrakan.nn.kan import KAN, KANLayer
from spectrakan.nn.token import GlobalToken, centre_value, space_mean, space_spread
from spectrakan.numerics.quadrature import cell_volumes
from spectrakan.theory.enclosures import enclose
from spectrakan.theory.kan_bounds import layers_of, slope_matrices
from spectrakan.theory.pieces import edge_pieces
from spectrakan.theory.signal import Signal
from spectrakan.theory.tangent import Tangent, Variation

SPREAD_FLOOR = 1e-6
"""What `space_spread` adds under its root."""


def summary_signal(token: GlobalToken, field: Signal, params: Tensor | None, axes: Sequence[Axis]) -> Signal:
    """Z = P(u) of a signal `(channels, *space)`, the parameters `(params,)` behind it."""
    parts = {
        "center": [_centre],
        "mean": [_mean],
        "center+mean+std": [_centre, _mean, _spread],
    }[token.pool]
    signals = [part(field, axes) for part in parts]
    whole = signals[0] if len(signals) == 1 else _stacked(signals)
    return whole if params is None else whole.appended(params)


def token_signal(network: nn.Module, summary: Signal) -> Signal:
    """T = Phi(z) for a KAN, an MLP or nothing."""
    if isinstance(network, KAN):
        for layer in layers_of(network):
            summary = kan_layer_signal(layer, summary)
        return summary
    if isinstance(network, nn.Sequential):
        hidden = summary.dense(cast(nn.Linear, network[0])).activated("silu")
        return hidden.dense(cast(nn.Linear, network[2]))
    return summary


def kan_layer_signal(layer: KANLayer, signal: Signal) -> Signal:
    """One layer of edges on a vector."""
    low, high = signal.interval()
    slopes, spread = slope_matrices(enclose(edge_pieces(layer), low[:, None], high[:, None], 1))
    centre, half = slopes[0], spread[0]
    by_output, by_input = half.sum(1), half.sum(0)
    # g² is what a multiplier of half-width one leaves of the signal weighted by its columns.
    weighted = Tangent(
        by_input.sqrt()[:, None] * signal.tangent.middle,
        None if signal.tangent.spread is None else by_input.sqrt()[:, None] * signal.tangent.spread * by_input.sqrt(),
        None if signal.tangent.box is None else by_input.sqrt() * signal.tangent.box,
        signal.tangent.shape,
    )
    variation = Variation(weighted.bound().square() * by_output, half @ signal.tangent.reach())
    tangent = signal.tangent.times(centre).widened(variation)
    value = layer(signal.value[None])[0]
    return replace(signal, value=value, tangent=tangent)


def _as_history(field: Tensor) -> Tensor:
    """`(channels, batch, *space)` -> `(batch, channels, *space, 1)`: one field, each channel a frame."""
    return field.movedim(0, 1)[..., None]


def _centre(field: Signal, axes: Sequence[Axis]) -> Signal:
    return field.mapped(lambda values: centre_value(_as_history(values), axes)[..., 0].T)


def _mean(field: Signal, axes: Sequence[Axis]) -> Signal:
    return field.mapped(lambda values: space_mean(_as_history(values), axes)[..., 0].T)


def _spread(field: Signal, axes: Sequence[Axis]) -> Signal:
    """The standard deviation of each channel; `field` is the input itself."""
    history = _as_history(field.value[:, None])
    sigma = space_spread(history, axes)[0, :, 0]
    mean = space_mean(history, axes)[0, :, 0]
    volumes = cell_volumes([axis.weights for axis in axes]).to(sigma).flatten()
    direction = volumes * (field.value.flatten(1) - mean[:, None]) / sigma[:, None]
    channels, cells = direction.shape
    middle = torch.zeros(channels, channels, cells, dtype=sigma.dtype)
    middle.diagonal().copy_(direction.T)
    plain = (sigma.square() - SPREAD_FLOOR).clamp_min(0).sqrt()
    least = ((plain - field.stage.radius).clamp_min(0).square() + SPREAD_FLOOR).sqrt()
    turned = (field.stage.radius / least).clamp_max(2.0)
    variation = Variation(turned.square() * channels, turned)
    tangent = Tangent(middle.flatten(1), None, None, (channels,)).widened(variation)
    return Signal(sigma, tangent, field.stage)


def _stacked(signals: Sequence[Signal]) -> Signal:
    """Vectors one after another; those that vary do so independently."""
    value = torch.cat([signal.value for signal in signals])
    middle = torch.cat([signal.tangent.middle for signal in signals])
    total = Tangent(middle, None, None, tuple(value.shape))
    varying = [signal for signal in signals if signal.tangent.spread is not None]
    if varying:
        blocks = [
            torch.zeros(signal.value.numel(), signal.value.numel(), dtype=value.dtype)
            if signal.tangent.spread is None
            else len(varying) * signal.tangent.spread
            for signal in signals
        ]
        boxes = [
            torch.zeros_like(signal.value) if signal.tangent.box is None else signal.tangent.box for signal in signals
        ]
        total = replace(total, spread=torch.block_diag(*blocks), box=torch.cat(boxes))
    return Signal(value, total, signals[0].stage)
