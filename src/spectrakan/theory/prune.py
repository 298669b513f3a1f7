"""Pruning a KAN: edges that say nothing about the data are taken out, and what they said is kept as a constant.

An edge is dead if what it passes on spreads, over the data, less than a share of the widest edge of its layer, or if
it leads to a neuron that nothing listens to. A dead edge phi is not replaced by zero but by its mean m over the data:
B-splines sum to one on their grid, so adding m to all coefficients of a living edge into the same neuron adds just m
(beyond the grid too, where splines go on straight). Edges that are exactly constant on the data can therefore go
without changing the function there at all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Window
from spectrakan.models.operator import Operator
from spectrakan.nn.kan import KAN, KANLayer
from spectrakan.theory.edge_views import LayerView, edge_views
from spectrakan.theory.kan_bounds import layers_of
from spectrakan.theory.parts import token_inputs, token_kan

Model = TypeVar("Model", bound=Operator)


@dataclass(frozen=True, eq=False)
class PruneReport:
    """Which edges were taken out, and what that changed."""

    dead: tuple[Tensor, ...]
    """For every layer `(out, in)`, True where an edge was taken out."""
    spread: tuple[Tensor, ...]
    """For every layer `(out, in)`, the spread of what the edge passed on before."""
    change: float
    """Root mean square change of the KAN's output over that output's spread, on the same data."""
    error_before: float | None = None
    """Relative L2 error of the model's next frame, where targets were given."""
    error_after: float | None = None
    """The same after pruning."""

    @property
    def removed(self) -> int:
        """Number of edges taken out."""
        return sum(int(layer.sum()) for layer in self.dead)

    @property
    def edges(self) -> int:
        """Number of edges there were."""
        return sum(layer.numel() for layer in self.dead)


def dead_edges(views: list[LayerView], threshold: float) -> list[Bool[Tensor, "out in"]]:
    """Which edges are dead, layer by layer, by the two rules of the file's head."""
    if not 0 <= threshold < 1:
        raise ConfigError(f"the threshold is a share of the widest edge, from 0 to below 1, got {threshold}")
    dead: list[Tensor] = []
    unheard: Tensor | None = None
    for view in reversed(views):
        spread = view.spread()
        # Rounding alone gives a constant edge some spread.
        noise = 4 * torch.finfo(spread.dtype).eps * view.outputs.abs().amax()
        silent = spread <= max(threshold * float(spread.max()), float(noise))
        if unheard is not None:
            silent = silent | unheard[:, None]
        dead.insert(0, silent)
        unheard = silent.all(0)
    return dead


@torch.no_grad()
def prune_kan(kan: KAN, samples: Float[Tensor, "samples in"], *, threshold: float = 0.01) -> tuple[KAN, PruneReport]:
    """A copy of the KAN without its dead edges, and what that changed on the samples."""
    views = edge_views(kan, samples)
    dead = dead_edges(views, threshold)
    pruned = copy.deepcopy(kan)
    for layer, view, silent in zip(layers_of(pruned), views, dead, strict=True):
        _silence(layer, silent, view.outputs.mean(-1), view.spread())
    before, after = kan(samples), pruned(samples)
    usual = before.std(0, correction=0).square().sum().sqrt().clamp_min(torch.finfo(before.dtype).tiny)
    change = float((after - before).square().sum(1).mean().sqrt() / usual)
    return pruned, PruneReport(tuple(dead), tuple(view.spread() for view in views), change)


@torch.no_grad()
def prune_token(model: Model, windows: Iterable[Window], *, threshold: float = 0.01) -> tuple[Model, PruneReport]:
    """A copy of the model with its token's KAN pruned on windows of data, and its error before and after."""
    kept = list(windows)
    if not kept:
        raise ConfigError("pruning needs data: give at least one window")
    summaries = torch.cat([token_inputs(model, window.inputs, window.params, window.grid) for window in kept])
    kan, report = prune_kan(token_kan(model), summaries, threshold=threshold)
    pruned = copy.deepcopy(model)
    token_kan(pruned).load_state_dict(kan.state_dict())
    before, after = (_error(version, kept) for version in (model, pruned))
    return pruned, PruneReport(report.dead, report.spread, report.change, before, after)


def _silence(layer: KANLayer, dead: Tensor, means: Tensor, spread: Tensor) -> None:
    """Take edges out and move their means into the widest living edge, or one made constant where none lives."""
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
    total, count = 0.0, 0
    for window in windows:
        pred, truth = model(window.inputs, window.params, window.grid), window.targets[:, 0]
        error, size = (part.flatten(1, -2).norm(dim=1) for part in (pred - truth, truth))
        total += float((error / size.clamp_min(torch.finfo(size.dtype).tiny)).mean(1).sum())
        count += pred.shape[0]
    return total / count
