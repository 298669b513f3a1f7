"""The parts of a SpectraKAN that the theory is about: as maps of its inputs, and edges of a KAN as plain arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.kan import KAN
from spectrakan.theory.kan_bounds import layers_of

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


@dataclass(frozen=True, eq=False)
class LayerView:
    """The edge functions of one layer, its knots and its inputs."""

    points: Float[Tensor, "input points"]
    """Abscissae of the curves: the union of the ranges of the grid and of the data."""
    curves: Float[Tensor, "output input points"]
    """phi_ji at the points."""
    knots: Float[Tensor, "input knots"]
    """Knots inside the grid."""
    inputs: Float[Tensor, "input samples"]
    """The samples as inputs of this layer."""
    outputs: Float[Tensor, "output input samples"]
    """phi_ji at the inputs."""

    def spread(self) -> Float[Tensor, "output input"]:
        """Standard deviation of every edge's outputs over the data."""
        return self.outputs.std(-1, correction=0)


@torch.no_grad()
def edge_views(kan: KAN, samples: Float[Tensor, "samples in"], *, num_points: int = 200) -> list[LayerView]:
    """A view of every layer for `samples`; for a model's token see `token_inputs`.

    >>> views = edge_views(KAN([2, 3, 1]), torch.rand(50, 2))
    >>> [tuple(view.curves.shape) for view in views]
    [(3, 2, 200), (1, 3, 200)]
    """
    if samples.shape[0] < 2 or num_points < 2:
        raise ConfigError(f"a view needs at least 2 samples and 2 points, got {samples.shape[0]} and {num_points}")
    views = []
    features = samples.T
    for layer in layers_of(kan):
        order = layer.spline_order
        knots = layer.knots()[:, order:-order]
        low = torch.minimum(knots[:, :1], features.amin(1, keepdim=True))
        high = torch.maximum(knots[:, -1:], features.amax(1, keepdim=True))
        points = low + (high - low) * torch.linspace(0, 1, num_points, dtype=low.dtype, device=low.device)
        arrays = (points, layer.edge_curves(points), knots, features, layer.edge_curves(features))
        views.append(LayerView(*(array.detach().cpu() for array in arrays)))
        features = layer.feature_major(features)
    return views
