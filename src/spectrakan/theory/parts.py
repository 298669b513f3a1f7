"""The parts of a SpectraKAN that the theory is about, as maps of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.kan import KAN

Map = Callable[[Tensor], Tensor]
"""From a batch of inputs to a batch of outputs."""


def token_kan(model: Operator) -> KAN:
    """The KAN that makes the model's token; a model without one raises `ConfigError`."""
    if isinstance(model, SpectraKAN) and model.global_token is not None:
        network = model.global_token.network
        if isinstance(network, KAN):
            return network
    raise ConfigError(
        f"expected a model with a KAN token (spectrakan with token='kan'), got '{model.name}' without one"
    )


@torch.no_grad()
def token_inputs(model: Operator, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
    """The summaries z = P(u) of physical inputs, the input of the token's network, `(batch, d_0)`."""
    if not isinstance(model, SpectraKAN):
        raise ConfigError(f"expected a model with a token, got '{model.name}' without one")
    history, params = model.network_inputs(x, params)
    return model._need_token().summary(history, params, model.axes(history, grid))


def model_maps(model: SpectraKAN, params: Tensor | None, axes: Sequence[Axis]) -> dict[str, Map]:
    """Token, features, modulation and prediction of normalised histories, with the same parameters."""
    network = model._need_token()

    def given(history: Tensor) -> tuple[Tensor, Tensor | None]:
        return model.decayed(history), None if params is None else params.expand(history.shape[0], -1)

    def token(history: Tensor) -> Tensor:
        found: Tensor = network(*given(history), axes)
        return found

    def features(history: Tensor) -> Tensor:
        return model._features(*given(history), axes, None)

    def modulation(history: Tensor) -> Tensor:
        value = model._value(token(history), features(history), axes)
        if value is None:
            raise ConfigError("this model has no modulation")
        return value

    def prediction(history: Tensor) -> Tensor:
        return model.postprocess(model._forward(*given(history), axes), history, axes)

    maps = (token, features, modulation, prediction)
    return {function.__name__: function for function in maps}
