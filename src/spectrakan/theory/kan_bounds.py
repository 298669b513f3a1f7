"""Lipschitz constants of a whole KAN in the Euclidean norm.

    product     ||L_1||_2 ||L_2||_2 ...                     L_l the matrix of the edges' Lipschitz constants
    over a box  ||S_L .. S_1||_2 + sum of what varies       S_l the middle of each edge's slope over what it can meet

The product holds for all inputs, for |y_j - y'_j| <= sum_i L_ji |x_i - x'_i|. Over a box of inputs each edge meets
an interval only, where its slope is S_ji + E_ji with |E_ji| <= D_ji, and the Jacobian of l layers is J_l = M_l + R_l,
    M_l = S_l M_{l-1},     ||R_l|| <= ||S_l|| ||R_{l-1}|| + ||D_l|| ||J_{l-1}||,     ||J_l|| <= ||M_l|| + ||R_l||.
Signs that cancel between layers stay in M, and the smaller the box the smaller R.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from spectrakan.nn.kan import KAN, KANLayer
from spectrakan.theory.edges import exact_bounds, hull_bounds, lemma_bounds
from spectrakan.theory.enclosures import Range, enclose
from spectrakan.theory.pieces import edge_pieces

EdgeBound = Literal["lemma", "hull", "exact"]
EDGE_BOUNDS: dict[str, Callable[[KANLayer], Tensor]] = {
    "lemma": lemma_bounds,
    "hull": hull_bounds,
    "exact": exact_bounds,
}
"""How steep an edge may be: `lemma` and `hull` are differentiable, `exact` is searched."""


def layers_of(kan: KAN) -> list[KANLayer]:
    """The layers of a KAN in order."""
    return [layer for layer in kan.layers if isinstance(layer, KANLayer)]


def layer_bound(layer: KANLayer, edges: EdgeBound = "lemma") -> Tensor:
    """||L||_2 of one layer, a scalar; differentiable for `lemma` and `hull`."""
    norm: Tensor = torch.linalg.matrix_norm(EDGE_BOUNDS[edges](layer), ord=2)
    return norm


def product_bound(kan: KAN, edges: EdgeBound = "lemma") -> Tensor:
    """The product of the layers' bounds, a scalar: the paper's L_KAN with `lemma`, the same argument with `exact`.

    >>> kan = KAN([2, 3, 1])
    >>> bool(product_bound(kan, "hull") <= product_bound(kan, "lemma"))
    True
    """
    bound = torch.ones(())
    for layer in layers_of(kan):
        bound = bound * layer_bound(layer, edges)
    return bound


@torch.no_grad()
def box_bound(kan: KAN, low: Tensor, high: Tensor) -> Tensor:
    """Lipschitz constants over boxes `low`, `high` `(batch, in)`: `(batch,)`, float64."""
    low, high = low.double().T, high.double().T
    middle: Tensor | None = None
    varies = torch.zeros(low.shape[1], dtype=torch.float64)
    whole = torch.ones_like(varies)
    for layer in layers_of(kan):
        pieces = edge_pieces(layer)
        centre, spread = slope_matrices(enclose(pieces, low, high, 1))
        middle = centre if middle is None else centre @ middle
        varies = _norm(centre) * varies + _norm(spread) * whole
        # Neither way of bounding the whole is always the better one.
        whole = torch.minimum(_norm(middle) + varies, _norm(centre.abs() + spread) * whole)
        least, most = enclose(pieces, low, high, 0)
        low, high = least.sum(1), most.sum(1)
    return whole


@torch.no_grad()
def box_image(layers: Sequence[KANLayer], low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """A box that holds all values behind layers over boxes of inputs: `(batch, in)` -> `(batch, out)`, float64."""
    low, high = low.double().T, high.double().T
    for layer in layers:
        least, most = enclose(edge_pieces(layer), low, high, 0)
        low, high = least.sum(1), most.sum(1)
    return low.T, high.T


def slope_matrices(slopes: Range) -> tuple[Tensor, Tensor]:
    """Middle and half-width of slope ranges `(out, in, batch)`, each `(batch, out, in)`."""
    least, most = (part.movedim(-1, 0) for part in slopes)
    return (most + least) / 2, (most - least) / 2


def _norm(matrix: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.matrix_norm(matrix, ord=2)
    return norm
