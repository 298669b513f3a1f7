"""Ranges of edge functions and of their slopes over many intervals at once.

On a cell of width h a function with |f''| <= M stays within M h² / 8 of the line between its ends, so
    min(f(a), f(b)) - M h² / 8  <=  f  <=  max(f(a), f(b)) + M h² / 8.
Here f is phi or phi'. Cells never cross a knot, where higher derivatives jump.
Shapes: intervals `(in, batch)`, ranges `(out, in, batch)`; pieces are gone through one by one to save memory.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from spectrakan.theory.pieces import EdgePieces, bernstein_basis
from spectrakan.theory.slopes import SILU_THIRD, silu_slope, slope_range, value_range

CELLS = 12
"""Cells that each knot interval's part of an interval is cut into."""
ROUNDING = 1e-12
"""Share by which ranges are widened for the rounding of their computation."""

Order = Literal[0, 1]
Range = tuple[Tensor, Tensor]


@torch.no_grad()
def enclose(pieces: EdgePieces, low: Tensor, high: Tensor, order: Order) -> Range:
    """Bounds of phi (`order=0`) or phi' (`order=1`) over [low, high] for every edge."""
    least = torch.full((*pieces.base.shape, low.shape[1]), torch.inf, dtype=low.dtype)
    most = -least
    for number in range(pieces.breaks.shape[1] - 1):
        start = torch.maximum(low, pieces.breaks[:, number, None])
        end = torch.minimum(high, pieces.breaks[:, number + 1, None])
        found = _on_piece(pieces, number, start, torch.maximum(start, end), order)
        least, most = _include((least, most), found, start <= end)
    for side, (start, end) in enumerate(
        [(low, torch.minimum(high, pieces.breaks[:, :1])), (torch.maximum(low, pieces.breaks[:, -1:]), high)]
    ):
        found = _on_line(pieces, side, start, torch.maximum(start, end), order)
        least, most = _include((least, most), found, start <= end)
    slack = ROUNDING * (1 + torch.maximum(least.abs(), most.abs()))
    return least - slack, most + slack


def _include(total: Range, found: Range, there: Tensor) -> Range:
    """The union of two ranges where the second is there at all."""
    return (
        torch.where(there, torch.minimum(total[0], found[0]), total[0]),
        torch.where(there, torch.maximum(total[1], found[1]), total[1]),
    )


def _on_piece(pieces: EdgePieces, number: int, start: Tensor, end: Tensor, order: Order) -> Range:
    x = _places(start, end)
    left = pieces.breaks[:, number, None, None]
    width = pieces.breaks[:, number + 1, None, None] - left
    curve = pieces.derivative(order)[:, :, number]
    basis = bernstein_basis((x - left) / width, curve.shape[-1] - 1)
    base = (F.silu, silu_slope)[order](x)
    values = torch.einsum("oim,ibcm->oibc", curve, basis) + pieces.base[..., None, None] * base
    bend = pieces.derivative(order + 2)[:, :, number].abs().amax(-1)
    bend = bend + pieces.base.abs() * (0.5, SILU_THIRD)[order]
    slack = bend[..., None] * ((end - start) / CELLS).square() / 8
    return values.amin(-1) - slack, values.amax(-1) + slack


def _on_line(pieces: EdgePieces, side: int, start: Tensor, end: Tensor, order: Order) -> Range:
    """Beyond the grid the spline is a line; SiLU has a known range on every cell."""
    slope, base = pieces.end_slopes[..., side, None], pieces.base[..., None]
    if order == 1:
        return _sum((slope, slope), base, slope_range("silu", start, end))
    x = _places(start, end)
    from_end = x - pieces.breaks[:, 0 if side == 0 else -1, None, None]
    line = pieces.end_values[..., side, None, None] + slope[..., None] * from_end
    cells = (torch.minimum(line[..., :-1], line[..., 1:]), torch.maximum(line[..., :-1], line[..., 1:]))
    low, high = _sum(cells, base[..., None], value_range("silu", x[..., :-1], x[..., 1:]))
    return low.amin(-1), high.amax(-1)


def _sum(line: Range, base: Tensor, silu: Range) -> Range:
    """Range of line + base SiLU from the ranges of both."""
    ends = base * silu[0], base * silu[1]
    return line[0] + torch.minimum(*ends), line[1] + torch.maximum(*ends)


def _places(start: Tensor, end: Tensor) -> Tensor:
    steps = torch.linspace(0, 1, CELLS + 1, dtype=start.dtype)
    return torch.lerp(start[..., None], end[..., None], steps)
