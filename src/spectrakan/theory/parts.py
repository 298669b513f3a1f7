"""The parts of a SpectraKAN that the theory speaks of, and what they hold for given inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.amfno import with_params
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import channels_first
from spectrakan.nn.kan import KAN
from spectrakan.nn.modulation import GlobalModulation
from spectrakan.nn.token import GlobalToken


@dataclass(frozen=True)
class Asked:
    """One question to the modulation: token `(batch, token)`, features `(channel, batch, *space)`, their axes."""

    token: Tensor
    features: Tensor
    axes: tuple[Axis, ...]


def token_kan(model: Operator) -> KAN:
    """The KAN that makes the model's token; a model without one raises `ConfigError`."""
    if isinstance(model, SpectraKAN) and model.global_token is not None:
        network = model.global_token.network
        if isinstance(network, KAN):
            return network
    raise ConfigError(
        f"expected a model with a KAN token (spectrakan with token='kan'), got '{model.name}' without one"
    )


def modulation_layer(model: Operator) -> GlobalModulation:
    """The model's global modulation layer; a model without one raises `ConfigError`."""
    if isinstance(model, SpectraKAN) and model.gml is not None:
        return model.gml
    raise ConfigError(
        f"expected a model with global modulation (spectrakan with use_gml), got '{model.name}' without it"
    )


@torch.no_grad()
def token_inputs(model: Operator, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
    """The summaries z = P(u) of physical inputs, which the token's network sees, `(batch, d_0)`."""
    token_kan(model)
    history, params = model.normalized(x, params)
    summary: Tensor = _global_token(model).summary(history, params, model.axes(history, grid))
    return summary


@torch.no_grad()
def modulation_inputs(model: Operator, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Asked:
    """Token and trunk features of physical inputs: all that the modulation layer sees."""
    modulation_layer(model)
    history, params = model.normalized(x, params)
    axes = model.axes(history, grid)
    token: Tensor = _global_token(model)(history, params, axes)
    return Asked(token, _features(model, history, params, axes, token), axes)


def _global_token(model: Operator) -> GlobalToken:
    if isinstance(model, SpectraKAN) and model.global_token is not None:
        return model.global_token
    raise ConfigError(f"expected a model with a token, got '{model.name}' without one")


def _features(model: Operator, history: Tensor, params: Tensor | None, axes: Sequence[Axis], token: Tensor) -> Tensor:
    if not isinstance(model, SpectraKAN):
        raise ConfigError(f"expected a spectrakan model, got '{model.name}'")
    factors = None if model.gate_map is None else model.gate_map(token)
    features: Tensor = model.trunk(with_params(channels_first(history), params), axes, factors)
    return features
