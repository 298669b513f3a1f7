"""The edges of a KAN on data: curves, knots and inputs as plain arrays, and pruning of edges that do not matter.

An edge is dead if the standard deviation of its outputs over the data is below a share of the largest one in its
layer, or if it leads to a neuron with dead outgoing edges only. A dead edge phi is replaced by its mean m over the
data, not by zero: B-splines sum to one on their grid, so adding m to all coefficients of another edge into the same
neuron adds exactly m (beyond the grid too, where splines are continued as lines). Edges that are constant on the data
can therefore be removed without any change of the function there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Window
from spectrakan.models.operator import Operator
from spectrakan.nn.kan import KAN, KANLayer
from spectrakan.theory.kan_bounds import layers_of
from spectrakan.theory.parts import token_inputs, token_kan

Model = TypeVar("Model", bound=Operator)


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

    def density(self, bins: int = 40) -> tuple[Float[Tensor, "input edges"], Float[Tensor, "input bins"]]:
        """Histogram of the inputs over the points' range: bin edges, and shares that sum to one."""
        low, high = self.points[:, :1], self.points[:, -1:]
        edges = low + (high - low) * torch.linspace(0, 1, bins + 1, dtype=low.dtype)
        index = ((self.inputs - low) / (high - low) * bins).long().clamp(0, bins - 1)
        counts = torch.zeros(len(low), bins, dtype=low.dtype)
        counts.scatter_add_(1, index, torch.ones_like(self.inputs))
        return edges, counts / self.inputs.shape[1]


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


@dataclass(frozen=True, eq=False)
class PruneReport:
    """Which edges were removed, and what that changed."""

    dead: tuple[Tensor, ...]
    """For every layer `(out, in)`, True where an edge was removed."""
    change: float
    """Root mean square change of the KAN's output over that output's spread, on the same data."""
    error_before: float | None = None
    """Relative L2 error of the model's next frame, where targets were given."""
    error_after: float | None = None
    """The same after pruning."""

    @property
    def removed(self) -> int:
        """Number of edges removed."""
        return sum(int(layer.sum()) for layer in self.dead)

    @property
    def edges(self) -> int:
        """Number of edges before."""
        return sum(layer.numel() for layer in self.dead)


def dead_edges(views: list[LayerView], threshold: float) -> list[Bool[Tensor, "out in"]]:
    """Which edges are dead, layer by layer, by the two rules of the file's head."""
    if not 0 <= threshold < 1:
        raise ConfigError(f"the threshold is a share of the widest edge, at least 0 and below 1, got {threshold}")
    dead: list[Tensor] = []
    for view in reversed(views):
        spread = view.spread()
        # Rounding alone gives a constant edge some spread.
        noise = 4 * torch.finfo(spread.dtype).eps * view.outputs.abs().amax()
        constant = spread <= max(threshold * float(spread.max()), float(noise))
        dead.insert(0, constant | dead[0].all(0)[:, None] if dead else constant)
    return dead


@torch.no_grad()
def prune_kan(kan: KAN, samples: Float[Tensor, "samples in"], *, threshold: float = 0.01) -> tuple[KAN, PruneReport]:
    """A copy of the KAN without its dead edges, and what that changed on the samples."""
    views = edge_views(kan, samples)
    dead = dead_edges(views, threshold)
    pruned = copy.deepcopy(kan)
    for layer, view, removed in zip(layers_of(pruned), views, dead, strict=True):
        _remove(layer, removed, view.outputs.mean(-1), view.spread())
    before, after = kan(samples), pruned(samples)
    scale = before.std(0, correction=0).square().sum().sqrt().clamp_min(torch.finfo(before.dtype).tiny)
    change = float((after - before).square().sum(1).mean().sqrt() / scale)
    return pruned, PruneReport(tuple(dead), change)


@torch.no_grad()
def prune_token(model: Model, windows: Iterable[Window], *, threshold: float = 0.01) -> tuple[Model, PruneReport]:
    """A copy of the model with its token's KAN pruned on windows of data, and its error before and after."""
    kept = list(windows)
    if not kept:
        raise ConfigError("pruning needs data: expected at least one window, got none")
    summaries = torch.cat([token_inputs(model, window.inputs, window.params, window.grid) for window in kept])
    kan, report = prune_kan(token_kan(model), summaries, threshold=threshold)
    pruned = copy.deepcopy(model)
    token_kan(pruned).load_state_dict(kan.state_dict())
    return pruned, replace(report, error_before=_error(model, kept), error_after=_error(pruned, kept))


def _remove(layer: KANLayer, dead: Tensor, means: Tensor, spread: Tensor) -> None:
    """Remove edges and add their means to the remaining edge with the largest spread, or to a constant edge."""
    dead, means, spread = (part.to(layer.base_weight.device) for part in (dead, means, spread))
    layer.base_weight.masked_fill_(dead, 0.0)
    layer.coefficients.mul_(layer.spline_weight[..., None]).masked_fill_(dead[..., None], 0.0)
    layer.spline_weight.copy_((~dead).to(layer.spline_weight))
    receiver = spread.masked_fill(dead, -1.0).argmax(1)
    rows = torch.arange(layer.out_features, device=receiver.device)
    layer.spline_weight[rows, receiver] = 1.0
    layer.coefficients[rows, receiver] += (means * dead).sum(1, keepdim=True)


def _error(model: Operator, windows: list[Window]) -> float:
    """Relative L2 of the next frame in physical units, as the mean over samples and fields."""
    errors = []
    for window in windows:
        pred, truth = model(window.inputs, window.params, window.grid), window.targets[:, 0]
        error, size = (part.flatten(1, -2).norm(dim=1) for part in (pred - truth, truth))
        errors.append((error / size.clamp_min(torch.finfo(size.dtype).tiny)).mean(1).double())
    return float(torch.cat(errors).mean())
