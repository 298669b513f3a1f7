"""The edges of a KAN on data: curves, knots and inputs as plain arrays."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.nn.kan import KAN
from spectrakan.theory.kan_bounds import layers_of


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
    """A view of every layer for `samples`; for a model's token see `theory.parts.token_inputs`.

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
