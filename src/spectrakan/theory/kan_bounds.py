"""Lipschitz constants of a KAN in the Euclidean norm: of each edge, of a layer, of the whole network.

Edges, |phi'| at most (exact <= hull <= lemma; the last two are differentiable functions of the weights)
    lemma    |w_b| sup|b'| + |w_s| (2 / h_min) ||c||_1                                  Lemma 3.1
    hull     |w_b| sup|b'| + |w_s| max_r k |c_r - c_{r-1}| / (t_{r+k} - t_r)            differences in place of sizes
    exact    sup_x |w_b b'(x) + w_s s'(x)|                                              searched, with proof
Network, with L_l the matrix of the edges' constants of layer l, and slopes in S_l +- D_l over a box of inputs
    product     ||L_1||_2 ||L_2||_2 ...                                                 for all inputs
    over a box  ||M_l|| + ||R_l||,  M_l = S_l M_{l-1},  ||R_l|| <= ||S_l|| ||R_{l-1}|| + ||D_l|| ||J_{l-1}||
Proofs are in docs/theory.md. A layer of lower precision than float64 rounds its knots; its exact bound is the larger
of two, for the knots as the layer computes them and for those that its weights give in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from spectrakan.nn.kan import KAN, SILU_LIPSCHITZ, KANLayer
from spectrakan.theory.slopes import (
    SILU_THIRD,
    EdgePieces,
    Range,
    bernstein_basis,
    edge_pieces,
    enclose,
    silu_slope,
    slope_range,
)
from spectrakan.theory.tangent import nan_to_inf, spectral_norm

SPLIT = 16
"""Cells that every knot interval is cut into before the search."""
ROUNDS = 40
"""Most times the search cuts a cell into four: far beyond the resolution of float64."""
MOST_CELLS = 1 << 21
"""Open cells at which the search stops and takes the bound it has."""

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
    layer: KANLayer, low: Tensor | None = None, high: Tensor | None = None, *, tolerance: float = 1e-8
) -> Tensor:
    """The Lipschitz constant of every edge over [low, high] `(in,)`, or over all numbers: `(out, in)`, float64.

    Branch and bound: a cell of width h on which |phi'''| <= M has no slope above the larger one at its ends plus
    M h² / 8, so cells that cannot exceed the best slope found are dropped, and the others cut in four.
    The result lies above the true constant, by no more than `tolerance` of it.

    >>> layer = KANLayer(1, 1).double()
    >>> bool((exact_bounds(layer) <= 1.00001 * hull_bounds(layer)).all())
    True
    """
    exact, knots = deepcopy(layer).double(), layer.knots()
    bounds = _searched(exact, exact.knots(), low, high, tolerance)
    if knots.dtype == torch.float64:
        return bounds
    return torch.maximum(bounds, _searched(exact, knots.double(), low, high, tolerance))


def _searched(layer: KANLayer, knots: Tensor, low: Tensor | None, high: Tensor | None, tolerance: float) -> Tensor:
    pieces = edge_pieces(layer, knots)
    # An undefined end of the interval leaves it open.
    whole = torch.full_like(pieces.breaks[:, 0], torch.inf)
    low = -whole if low is None else low.double().nan_to_num(-torch.inf, torch.inf, -torch.inf)
    high = whole if high is None else high.double().nan_to_num(torch.inf, torch.inf, -torch.inf)
    # Where derivatives overflow nothing is searched, and the hull is the bound.
    finite = pieces.derivative(3).isfinite().all(-1).all(-1) & pieces.breaks.isfinite().all(-1)
    found = torch.where(finite, _steepest_end(pieces, low, high), torch.inf).flatten()
    cells = _first_cells(pieces, low, high)
    for _ in range(ROUNDS):
        ends, ceiling = _steepness(pieces, cells)
        found = found.scatter_reduce(0, cells.edge, ends, "amax")
        keep = ceiling > (found * (1 + tolerance / 2) + 1e-300)[cells.edge]
        cells = _Cells(*(part[keep] for part in cells)).cut(4)
        if not 0 < cells.start.numel() < MOST_CELLS:
            break
    found = found.scatter_reduce(0, cells.edge, _steepness(pieces, cells)[1], "amax")
    # Half of the tolerance is for the search, the other half for the rounding of the polynomials.
    exact = (found * (1 + tolerance)).view(pieces.base.shape) + pieces.noise[1]
    return torch.minimum(nan_to_inf(exact), nan_to_inf(hull_bounds(layer, knots) * (1 + tolerance / 2)))


class _Cells(NamedTuple):
    """Open cells in one list over all edges: the indices of their edges and pieces, and their ends."""

    edge: Tensor
    piece: Tensor
    start: Tensor
    end: Tensor

    def cut(self, parts: int) -> _Cells:
        """Every cell in equal parts."""
        steps = torch.linspace(0, 1, parts + 1, dtype=self.start.dtype)
        points = torch.lerp(self.start[:, None], self.end[:, None], steps)
        edge, piece = (each.repeat_interleave(parts) for each in (self.edge, self.piece))
        return _Cells(edge, piece, points[:, :-1].flatten(), points[:, 1:].flatten())


def _first_cells(pieces: EdgePieces, low: Tensor, high: Tensor) -> _Cells:
    """Every knot interval's part inside [low, high], cut into equal cells."""
    shape = pieces.bernstein.shape[:-1]
    start = torch.maximum(pieces.breaks[:, :-1], low[:, None]).expand(shape).flatten()
    end = torch.minimum(pieces.breaks[:, 1:], high[:, None]).expand(shape).flatten()
    inside = (start <= end).nonzero()[:, 0]
    return _Cells(inside // shape[-1], inside % shape[-1], start[inside], end[inside]).cut(SPLIT)


def _steepness(pieces: EdgePieces, cells: _Cells) -> tuple[Tensor, Tensor]:
    """The larger slope at the ends of every cell, and a bound of all slopes in it."""
    inputs, slopes = cells.edge % pieces.base.shape[1], pieces.derivative(1)
    left = pieces.breaks[inputs, cells.piece]
    width = pieces.breaks[inputs, cells.piece + 1] - left
    curve, base = slopes.flatten(0, 1)[cells.edge, cells.piece], pieces.base.flatten()[cells.edge]

    def slope(x: Tensor) -> Tensor:
        basis = bernstein_basis((x - left) / width, slopes.shape[-1] - 1)
        return ((curve * basis).sum(-1) + base * silu_slope(x)).abs()

    ends = torch.maximum(slope(cells.start), slope(cells.end))
    third = pieces.derivative(3).abs().amax(-1).flatten(0, 1)[cells.edge, cells.piece]
    return ends, ends + (third + SILU_THIRD * base.abs()) * (cells.end - cells.start).square() / 8


def _steepest_end(pieces: EdgePieces, low: Tensor, high: Tensor) -> Tensor:
    """The largest slope on the lines beyond the grid, where SiLU' has a known range: `(out, in)`; 0 if outside."""
    best = torch.zeros_like(pieces.base)
    ends = [(low, torch.minimum(high, pieces.breaks[:, 0])), (torch.maximum(low, pieces.breaks[:, -1]), high)]
    for side, (start, end) in enumerate(ends):
        least, most = slope_range("silu", start, end)
        slope = pieces.end_slopes[..., side]
        steep = torch.maximum((slope + pieces.base * least).abs(), (slope + pieces.base * most).abs())
        best = torch.where(start <= end, torch.maximum(best, steep), best)
    return best


EDGE_BOUNDS: dict[str, Callable[[KANLayer], Tensor]] = {
    "lemma": lemma_bounds,
    "hull": hull_bounds,
    "exact": exact_bounds,
}
"""Bounds of an edge's slope: `lemma` and `hull` are differentiable, `exact` is searched."""


def layers_of(kan: KAN) -> list[KANLayer]:
    """The layers of a KAN in order."""
    return [layer for layer in kan.layers if isinstance(layer, KANLayer)]


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
        centre, spread = slope_matrices(enclose(edge_pieces(layer), *box, 1))
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


def slope_matrices(slopes: Range) -> tuple[Tensor, Tensor]:
    """Middle and half-width of slope ranges `(out, in, batch)`, each `(batch, out, in)`."""
    least, most = (part.movedim(-1, 0) for part in slopes)
    return (most + least) / 2, (most - least) / 2
