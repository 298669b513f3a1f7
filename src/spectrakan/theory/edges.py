"""How steep each edge of a KAN can be: Lemma 3.1, a sharper closed form, and the exact constant.

    lemma    |w_b| sup|b'| + |w_s| (2 / h_min) ||c||_1                                  the paper's
    hull     |w_b| sup|b'| + |w_s| max_r k |c_r - c_{r-1}| / (t_{r+k} - t_r)            differences, not sizes
    exact    sup_x |w_b b'(x) + w_s s'(x)|                                              searched, with proof

The slope of a spline is a spline whose coefficients are those differences, and a spline lies between its smallest
and largest coefficient: exact <= hull <= lemma. The first two are differentiable functions of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.nn.kan import SILU_LIPSCHITZ, KANLayer
from spectrakan.theory.pieces import EdgePieces, bernstein_basis, edge_pieces
from spectrakan.theory.slopes import SILU_THIRD, silu_slope, slope_range

SPLIT = 16
"""Cells that every knot interval is cut into before the search."""
ROUNDS = 40
"""Most times the search cuts a cell into four: far beyond what rounding lets it see."""


def lemma_bounds(layer: KANLayer) -> Tensor:
    """Lemma 3.1 for every edge, `(out, in)`; gradients flow to weights and knots."""
    spacing: Tensor = layer.knots().diff(dim=1).amin(dim=1)
    spline = layer.spline_weight.abs() * layer.coefficients.abs().sum(-1) * 2 / spacing
    total: Tensor = layer.base_weight.abs() * SILU_LIPSCHITZ + spline
    return total


def hull_bounds(layer: KANLayer) -> Tensor:
    """The largest coefficient of the slope in place of the lemma's sum, `(out, in)`; gradients flow likewise."""
    knots, order = layer.knots(), layer.spline_order
    edge = torch.zeros_like(layer.coefficients[..., :1])
    coefficients = torch.cat([edge, layer.coefficients, edge], dim=-1)
    # Difference r needs t_r and t_{r+k}; a line beyond the grid never sees the splines that run out there.
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

    Branch and bound: a cell of width h on which |phi'''| <= M holds no slope above the larger one at its ends plus
    M h² / 8, so cells that cannot beat the best slope found are dropped, and the others cut in four.
    The result lies above the true constant, by no more than `tolerance` of it.

    >>> layer = KANLayer(1, 1)
    >>> bool((exact_bounds(layer) <= hull_bounds(layer)).all())
    True
    """
    pieces = edge_pieces(layer)
    low = torch.full_like(pieces.breaks[:, 0], -torch.inf) if low is None else low.double()
    high = torch.full_like(low, torch.inf) if high is None else high.double()
    search = _Search.begin(pieces, low, high)
    found = _steepest_end(pieces, low, high).flatten()
    for _ in range(ROUNDS):
        found = search.largest(found)
        search = search.narrowed(found * (1 + tolerance / 2) + 1e-300)
        if search.start.numel() == 0:
            break
    else:
        found = search.highest(found)
    # Half of the tolerance is for the search, the other half for the rounding of the polynomials.
    exact = (found * (1 + tolerance)).view(pieces.base.shape)
    return torch.minimum(exact, hull_bounds(layer).double())


@dataclass(frozen=True)
class _Search:
    """Cells still open, in one list over all edges: `edge` and `piece` say where, `start` and `end` which part."""

    pieces: EdgePieces
    edge: Tensor
    piece: Tensor
    start: Tensor
    end: Tensor

    @classmethod
    def begin(cls, pieces: EdgePieces, low: Tensor, high: Tensor) -> _Search:
        """Every knot interval's part inside [low, high], cut into equal cells."""
        outs, ins, count, _ = pieces.bernstein.shape
        start = torch.maximum(pieces.breaks[:, :-1], low[:, None])
        end = torch.minimum(pieces.breaks[:, 1:], high[:, None])
        open_cells = (start <= end).expand(outs, ins, count).reshape(-1).nonzero()[:, 0]
        start, end = (part.expand(outs, ins, count).reshape(-1)[open_cells] for part in (start, end))
        whole = cls(pieces, open_cells // count, open_cells % count, start, end)
        return whole.cut(SPLIT)

    def cut(self, parts: int) -> _Search:
        """Every cell in equal parts."""
        steps = torch.linspace(0, 1, parts + 1, dtype=self.start.dtype)
        places = torch.lerp(self.start[:, None], self.end[:, None], steps)
        edge, piece = (each.repeat_interleave(parts) for each in (self.edge, self.piece))
        return _Search(self.pieces, edge, piece, places[:, :-1].flatten(), places[:, 1:].flatten())

    def largest(self, best: Tensor) -> Tensor:
        """The largest slope at the cells' ends and in `best`, `(edges,)`."""
        return best.scatter_reduce(0, self.edge, self._ends(), "amax")

    def highest(self, best: Tensor) -> Tensor:
        """What no slope in an open cell exceeds, `(edges,)`."""
        return best.scatter_reduce(0, self.edge, self._ceiling(), "amax")

    def narrowed(self, best: Tensor) -> _Search:
        """Cells that may still hold a steeper slope than `best`, each cut in four."""
        keep = self._ceiling() > best[self.edge]
        kept = [part[keep] for part in (self.edge, self.piece, self.start, self.end)]
        return _Search(self.pieces, *kept).cut(4)

    def _ends(self) -> Tensor:
        return torch.maximum(self._slope(self.start).abs(), self._slope(self.end).abs())

    def _ceiling(self) -> Tensor:
        third = self.pieces.derivative(3).abs().amax(-1).flatten(0, 1)[self.edge, self.piece]
        curved = third + SILU_THIRD * self.pieces.base.flatten().abs()[self.edge]
        return self._ends() + curved * (self.end - self.start).square() / 8

    def _slope(self, x: Tensor) -> Tensor:
        slopes = self.pieces.derivative(1)
        inputs = self.edge % self.pieces.base.shape[1]
        left = self.pieces.breaks[inputs, self.piece]
        width = self.pieces.breaks[inputs, self.piece + 1] - left
        basis = bernstein_basis((x - left) / width, slopes.shape[-1] - 1)
        spline = (slopes.flatten(0, 1)[self.edge, self.piece] * basis).sum(-1)
        return spline + self.pieces.base.flatten()[self.edge] * silu_slope(x)


def _steepest_end(pieces: EdgePieces, low: Tensor, high: Tensor) -> Tensor:
    """The largest slope on the lines beyond the grid, where SiLU' has a known range: `(out, in)`; 0 if outside."""
    best = torch.zeros_like(pieces.base)
    ends = [(low, torch.minimum(high, pieces.breaks[:, 0])), (torch.maximum(low, pieces.breaks[:, -1]), high)]
    for side, (start, end) in enumerate(ends):
        # At infinity the slope of SiLU has come to rest at 0 or 1.
        least, most = slope_range("silu", start.clamp(-1e3, 1e3), end.clamp(-1e3, 1e3))
        slope = pieces.end_slopes[..., side]
        steep = torch.maximum((slope + pieces.base * least).abs(), (slope + pieces.base * most).abs())
        best = torch.where(start <= end, torch.maximum(best, steep), best)
    return best
