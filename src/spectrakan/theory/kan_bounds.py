"""Lipschitz constants of a KAN in the Euclidean norm: of each edge, of a layer, of the whole network.

Edges, |phi'| at most (exact <= hull <= lemma; the last two are differentiable functions of the weights)
    lemma    |w_b| sup|b'| + |w_s| (2 / h_min) ||c||_1                                  Lemma 3.1
    hull     |w_b| sup|b'| + |w_s| max_r k |c_r - c_{r-1}| / (t_{r+k} - t_r)            differences in place of sizes
    exact    sup_x |w_b b'(x) + w_s s'(x)|                                              enclosed on fine cells
Network, with L_l the matrix of the edges' constants of layer l, and slopes in S_l +- D_l over a box of inputs
    product     ||L_1||_2 ||L_2||_2 ...                                                 for all inputs
    over a box  ||M_l|| + ||R_l||,  M_l = S_l M_{l-1},  ||R_l|| <= ||S_l|| ||R_{l-1}|| + ||D_l|| ||J_{l-1}||
Proofs are in docs/theory.md. A layer of lower precision than float64 rounds its knots; its exact bound is the larger
of two, for the knots as the layer computes them and for those that its weights give in float64.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Literal

import torch
from torch import Tensor, nn

from spectrakan.nn.kan import KAN, SILU_LIPSCHITZ, KANLayer
from spectrakan.theory.norms import ROUNDING, nan_to_inf, spectral_norm
from spectrakan.theory.slopes import Range, edge_pieces, enclose

FINE = 8192
"""Cells that every knot interval is cut into for the exact constants."""

EdgeBound = Literal["lemma", "hull", "exact"]


def lemma_bounds(layer: KANLayer) -> Tensor:
    """Lemma 3.1 for every edge, `(out, in)`; gradients flow to weights and knots."""
    spacing: Tensor = layer.knots().diff(dim=1).amin(dim=1)
    spline = layer.spline_weight.abs() * layer.coefficients.abs().sum(-1) * 2 / spacing
    total: Tensor = layer.base_weight.abs() * SILU_LIPSCHITZ + spline
    return total


def hull_bounds(layer: KANLayer, knots: Tensor | None = None) -> Tensor:
    """The largest coefficient of the slope in place of the lemma's sum, `(out, in)`; gradients flow likewise."""
    knots, order = layer.knots() if knots is None else knots, layer.spline_order
    edge = torch.zeros_like(layer.coefficients[..., :1])
    coefficients = torch.cat([edge, layer.coefficients, edge], dim=-1)
    # Difference r needs t_r and t_{r+k}; with lines beyond the grid the outermost splines play no part.
    steps = order * coefficients.diff(dim=-1) / (knots[:, order:] - knots[:, : knots.shape[1] - order])
    if layer.extension == "linear":
        steps = steps[..., 1:-1]
    total: Tensor = layer.base_weight.abs() * SILU_LIPSCHITZ + layer.spline_weight.abs() * steps.abs().amax(-1)
    return total


@torch.no_grad()
def exact_bounds(
    layer: KANLayer, low: Tensor | None = None, high: Tensor | None = None, *, cells: int = FINE
) -> Tensor:
    """The Lipschitz constant of every edge over [low, high] `(in,)`, or over all numbers: `(out, in)`, float64.

    Slopes are enclosed on `cells` cells of every knot interval (`slopes`); the result lies above the true constant,
    by a share of the order of 1 / cells².

    >>> layer = KANLayer(1, 1).double()
    >>> bool((exact_bounds(layer) <= 1.00001 * hull_bounds(layer)).all())
    True
    """
    exact, own = deepcopy(layer).double(), layer.knots()
    readings = [exact.knots()] if own.dtype == torch.float64 else [exact.knots(), own.double()]
    # An undefined end of the interval leaves it open.
    whole = torch.full_like(readings[0][:, 0], torch.inf)
    least = -whole if low is None else low.double().nan_to_num(-torch.inf, torch.inf, -torch.inf)
    most = whole if high is None else high.double().nan_to_num(torch.inf, torch.inf, -torch.inf)
    bounds = torch.zeros_like(exact.base_weight)
    for knots in readings:
        slopes = enclose(edge_pieces(exact, knots), least[:, None], most[:, None], 1, cells)
        steepest = nan_to_inf(torch.maximum(*(end.abs() for end in slopes))[..., 0])
        hull = nan_to_inf(hull_bounds(exact, knots) * (1 + ROUNDING))
        bounds = torch.maximum(bounds, torch.minimum(steepest, hull))
    return bounds


EDGE_BOUNDS: dict[str, Callable[[KANLayer], Tensor]] = {
    "lemma": lemma_bounds,
    "hull": hull_bounds,
    "exact": exact_bounds,
}
"""Bounds of an edge's slope: `lemma` and `hull` are differentiable, `exact` is enclosed."""


def layers_of(network: nn.Module) -> list[KANLayer]:
    """The layers of a KAN in order, or of all KANs of a model."""
    return [layer for layer in network.modules() if isinstance(layer, KANLayer)]


def product_bound(kan: KAN, edges: EdgeBound = "lemma") -> Tensor:
    """The product of the layers' ||L||_2, a scalar: the paper's L_KAN with `lemma`, the same argument with `exact`.

    Differentiable for `lemma` and `hull`; infinite where an edge has no finite bound.

    >>> kan = KAN([2, 3, 1])
    >>> bool(product_bound(kan, "hull") <= product_bound(kan, "lemma"))
    True
    """
    bound = torch.ones(())
    for layer in layers_of(kan):
        bound = bound * spectral_norm(EDGE_BOUNDS[edges](layer))
    return nan_to_inf(bound)


@torch.no_grad()
def box_bound(kan: KAN, low: Tensor, high: Tensor) -> Tensor:
    """Lipschitz constants over boxes `low`, `high` `(batch, in)`: `(batch,)`, float64."""
    whole, varies = torch.ones(len(low), dtype=torch.float64), torch.zeros(len(low), dtype=torch.float64)
    middle = torch.eye(low.shape[1], dtype=torch.float64)
    for layer, box in zip(layers_of(kan), box_images(kan, low, high), strict=False):
        least, most = (part.movedim(-1, 0) for part in enclose(edge_pieces(layer), *box, 1))
        centre, spread = (most + least) / 2, (most - least) / 2
        middle = centre @ middle
        varies = spectral_norm(centre) * varies + spectral_norm(spread) * whole
        # Neither bound of the whole is always the smaller one.
        whole = torch.minimum(spectral_norm(middle) + varies, spectral_norm(centre.abs() + spread) * whole)
    return nan_to_inf(whole)


@torch.no_grad()
def box_images(kan: KAN, low: Tensor, high: Tensor) -> list[Range]:
    """Boxes around the inputs of every layer, and around the outputs, over boxes of inputs `(batch, in)`.

    Each is `(features, batch)`, float64.
    """
    boxes = [(low.double().T, high.double().T)]
    for layer in layers_of(kan):
        least, most = enclose(edge_pieces(layer), *boxes[-1], 0)
        boxes.append((least.sum(1), most.sum(1)))
    return boxes
