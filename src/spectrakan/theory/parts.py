"""The parts of a SpectraKAN that the theory is about, as maps of its inputs."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

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


def model_run(
    model: SpectraKAN, params: Tensor | None, axes: Sequence[Axis], *, token_alone: bool = False
) -> Callable[[Tensor], Mapping[str, Tensor]]:
    """From normalised histories to `summary`, `token`, `modulation` and `prediction`, with the same parameters.

    `token_alone` stops at the token.
    """
    token = model._need_token()
    value = model.gml if model.gml is not None else model.broadcast

    def run(batch: Tensor) -> Mapping[str, Tensor]:
        seen: dict[str, Tensor] = {}
        given = model.decayed(batch), None if params is None else params.expand(batch.shape[0], -1)
        hooks = [
            token.network.register_forward_pre_hook(lambda _, inputs: seen.__setitem__("summary", inputs[0])),
            token.register_forward_hook(lambda _, __, out: seen.__setitem__("token", out)),
        ]
        if isinstance(value, nn.Module):
            hooks.append(value.register_forward_hook(lambda _, __, out: seen.__setitem__("modulation", out)))
        try:
            if token_alone:
                token(*given, axes)
            else:
                seen["prediction"] = model.postprocess(model._forward(*given, axes), batch, axes)
        finally:
            for hook in hooks:
                hook.remove()
        return seen

    return run


def model_map(model: SpectraKAN, name: str, params: Tensor | None, axes: Sequence[Axis]) -> Map:
    """One quantity of `model_run` as a map of normalised histories."""
    run = model_run(model, params, axes, token_alone=name in ("summary", "token"))
    return lambda history: run(history)[name]
