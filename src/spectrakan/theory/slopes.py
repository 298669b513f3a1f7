"""Ranges of functions and of their slopes over intervals: nonlinearities, and the edges of a KAN layer.

A nonlinearity's range over [a, b] is spanned by its values at a, at b and at its turning points between them.

An edge phi = w_b SiLU + w_s s is SiLU plus a polynomial on every knot interval [t_j, t_{j+1}], in Bernstein form
sum_m p_m C(k, m) z^m (1 - z)^{k-m} with z = (x - t_j) / (t_{j+1} - t_j). Its slope has the coefficients
k (p_{m+1} - p_m) / (t_{j+1} - t_j). On a cell of width h inside a knot interval, f = phi or phi' with |f''| <= M has
    min(f(a), f(b)) - M h² / 8  <=  f  <=  max(f(a), f(b)) + M h² / 8.
Shapes: intervals `(in, batch)`, ranges `(out, in, batch)`; pieces are treated one by one to save memory.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from spectrakan.nn.kan import KANLayer
from spectrakan.theory.norms import nan_to_inf

SILU_TURN = 1.2784645427610738
"""SiLU falls up to minus this and rises after it."""
SILU_SLOPE_TURN = 2.3993572805154676
"""SiLU' has its lowest value at minus this and its highest at plus this."""
SILU_BEND_TURN = 3.4358409936632
"""SiLU'' turns at zero and at plus and minus this."""
SIGMOID_TURN = math.log(2 + math.sqrt(3))
TANH_TURN = SIGMOID_TURN / 2
"""The logistic function's second derivative and that of tanh turn at plus and minus these."""
SILU_THIRD = 0.3083
"""Above sup |SiLU'''|; sup |SiLU''| is SiLU''(0) = 1/2."""
FLAT = 1e3
"""Beyond plus and minus this every slope equals its limit in float64."""
CELLS = 12
"""Cells that each knot interval's part of an interval is cut into."""
ROUNDING = 1e-12
"""Share by which ranges are widened for the rounding of their computation."""

Order = Literal[0, 1]
Range = tuple[Tensor, Tensor]


def silu_slope(x: Tensor) -> Tensor:
    """SiLU'(x) = s + x s (1 - s), s the logistic function."""
    share = x.sigmoid()
    return share + x * share * (1 - share)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "silu": F.silu,
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "sin": torch.sin,
    "cos": torch.cos,
    "square": torch.square,
    "sqrt": torch.sqrt,
    "reciprocal": torch.reciprocal,
}
"""Nonlinear functions of single numbers whose slopes have known ranges."""

Table = dict[str, tuple[Callable[[Tensor], Tensor], tuple[float, ...]]]
QUARTERS = tuple(math.pi / 2 * count for count in range(-8, 9))
"""Turning points of sine and cosine, within plus and minus 4 pi."""
SLOPES: Table = {
    "gelu": (
        lambda x: torch.special.ndtr(x) + x * (-x.square() / 2).exp() / math.sqrt(2 * math.pi),
        (-math.sqrt(2), math.sqrt(2)),
    ),
    "silu": (silu_slope, (-SILU_SLOPE_TURN, SILU_SLOPE_TURN)),
    "sigmoid": (lambda x: x.sigmoid() * (1 - x.sigmoid()), (0.0,)),
    "tanh": (lambda x: 1 - x.tanh().square(), (0.0,)),
    "relu": (lambda x: (x > 0).to(x), ()),
    "exp": (torch.exp, ()),
    "sin": (torch.cos, QUARTERS),
    "cos": (lambda x: -x.sin(), QUARTERS),
    "square": (lambda x: 2 * x, ()),
    "sqrt": (lambda x: 0.5 / x.clamp_min(0).sqrt(), ()),
    "reciprocal": (lambda x: -1 / x.clamp_min(0).square(), ()),
}
"""Each slope and its turning points."""
CURVATURES: Table = {
    "gelu": (lambda x: (2 - x.square()) * (-x.square() / 2).exp() / math.sqrt(2 * math.pi), (-2.0, 0.0, 2.0)),
    "silu": (
        lambda x: x.sigmoid() * (1 - x.sigmoid()) * (2 + x * (1 - 2 * x.sigmoid())),
        (-SILU_BEND_TURN, 0.0, SILU_BEND_TURN),
    ),
    "sigmoid": (lambda x: x.sigmoid() * (1 - x.sigmoid()) * (1 - 2 * x.sigmoid()), (-SIGMOID_TURN, SIGMOID_TURN)),
    "tanh": (lambda x: -2 * x.tanh() * (1 - x.tanh().square()), (-TANH_TURN, TANH_TURN)),
    "exp": (torch.exp, ()),
    "sin": (lambda x: -x.sin(), QUARTERS),
    "cos": (lambda x: -x.cos(), QUARTERS),
    "square": (lambda x: torch.full_like(x, 2.0), ()),
    "sqrt": (lambda x: -0.25 / x.clamp_min(0).pow(1.5), ()),
    "reciprocal": (lambda x: 2 / x.clamp_min(0).pow(3), ()),
}
"""Each second derivative and its turning points; ReLU's has no bound."""
BOUNDED = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "sin": (-1.0, 1.0), "cos": (-1.0, 1.0)}
"""Ranges of functions with bounded values."""
RISING = {"sigmoid", "tanh"}
"""Bounded functions that rise everywhere."""
LEVEL = {"gelu", "silu", "sigmoid", "tanh"}
"""Functions whose derivatives equal their limits beyond `FLAT`."""


def slope_at(name: str, x: Tensor) -> Tensor:
    """The slope of a function."""
    return SLOPES[name][0](x.clamp(-FLAT, FLAT) if name in LEVEL else x)


def slope_range(name: str, low: Tensor, high: Tensor, table: Table = SLOPES) -> Range:
    """Smallest and largest slope (or second derivative, by `CURVATURES`) over [low, high], elementwise.

    ReLU counts both slopes at its kink, and any second derivative.

    >>> low, high = slope_range("relu", torch.tensor(-1.0), torch.tensor(2.0))
    >>> float(low), float(high)
    (0.0, 1.0)
    """
    if name == "relu":
        unknown = torch.full_like(low, torch.inf)
        return (-unknown, unknown) if table is CURVATURES else ((low > 0).to(low), 1 - (high < 0).to(low))
    if name in LEVEL:
        low, high = low.clamp(-FLAT, FLAT), high.clamp(-FLAT, FLAT)
    least, most = _range(*table[name], low, high)
    if name in ("sin", "cos"):
        far = torch.maximum(low.abs(), high.abs()) > QUARTERS[-1]
        least, most = torch.where(far, -1.0, least), torch.where(far, 1.0, most)
    return least, most


def farthest(ends: Range, slope: Tensor | float = 0.0) -> Tensor:
    """The largest distance of a range's numbers from a given one; infinite where it is unknown."""
    return nan_to_inf(torch.stack([end - slope for end in ends]).abs().amax(0))


def chord(name: str, centre: Tensor, reach: Tensor) -> Tensor:
    """The mean slope over [centre - reach, centre + reach]; the slope at the centre for the smallest intervals."""
    ends = FUNCTIONS[name](centre + reach) - FUNCTIONS[name](centre - reach)
    slope = torch.where(reach > 1e-5 * (1 + centre.abs()), ends / (2 * reach), slope_at(name, centre))
    return torch.where(slope.isfinite(), slope, slope_at(name, centre))


def rest_range(name: str, low: Tensor, high: Tensor, centre: Tensor, slope: Tensor, cells: int = 32) -> Range:
    """Bounds of g(x) = f(x) - f(centre) - slope (x - centre) over [low, high], elementwise, zero among them.

    On a cell of width h, g exceeds its larger end at most by sup |f''| h² / 8, by sup |f' - slope| h / 2, and by
    |slope| h where f rises.
    """
    function, start = FUNCTIONS[name], FUNCTIONS[name](centre)
    least, most = torch.zeros_like(centre), torch.zeros_like(centre)
    width, left, before = (high - low) / cells, low, function(low) - start - slope * (low - centre)
    for number in range(1, cells + 1):
        right = torch.lerp(low, high, number / cells)
        after = function(right) - start - slope * (right - centre)
        steep = farthest(slope_range(name, left, right), slope)
        bend = farthest(slope_range(name, left, right, table=CURVATURES))
        slack = torch.minimum(nan_to_inf(steep * width / 2), nan_to_inf(bend * width.square() / 8))
        if name in RISING:
            slack = torch.minimum(slack, nan_to_inf(slope.abs() * width))
        least = torch.minimum(least, torch.minimum(before, after) - slack)
        most = torch.maximum(most, torch.maximum(before, after) + slack)
        left, before = right, after
    if name in BOUNDED:
        flat = (slope == 0) & ~(least.isfinite() & most.isfinite())
        least = torch.where(flat, BOUNDED[name][0] - start, least)
        most = torch.where(flat, BOUNDED[name][1] - start, most)
    noise = ROUNDING * (1 + start.abs() + torch.maximum(most.abs(), least.abs()))
    # In small intervals differences of values are rounding alone, and derivatives say more.
    reach, tangent = torch.maximum(high - centre, centre - low), (slope_at(name, centre) - slope).abs()
    steep = farthest(slope_range(name, low, high), slope)
    bend = farthest(slope_range(name, low, high, table=CURVATURES))
    size = torch.minimum(steep, nan_to_inf(tangent + bend * reach / 2))
    size = nan_to_inf(size * reach * (1 + ROUNDING))
    return -torch.minimum(nan_to_inf(noise - least), size), torch.minimum(nan_to_inf(most + noise), size)


def _range(function: Callable[[Tensor], Tensor], turns: tuple[float, ...], low: Tensor, high: Tensor) -> Range:
    ends = function(low), function(high)
    least, most = torch.minimum(*ends), torch.maximum(*ends)
    for turn in turns:
        inside = (low <= turn) & (turn <= high)
        value = function(torch.full_like(low, turn))
        least = torch.where(inside, torch.minimum(least, value), least)
        most = torch.where(inside, torch.maximum(most, value), most)
    return least, most


@dataclass(frozen=True)
class EdgePieces:
    """All edges of a layer: phi(x) = base SiLU(x) + polynomial on each piece, beyond them its tangents or zero.

    `breaks` `(in, pieces + 1)`; `bernstein` `(out, in, pieces, k + 1)`; `base` `(out, in)`; `tangents` says what is
    below the first break and above the last.
    `noise` `(2, out, in)`: bounds of the rounding errors of values and slopes, a share of the largest coefficient.
    """

    breaks: Tensor
    bernstein: Tensor
    base: Tensor
    tangents: bool
    noise: Tensor

    def derivative(self, times: int) -> Tensor:
        """Bernstein coefficients of the polynomials' derivative, `(out, in, pieces, max(k - times, 0) + 1)`."""
        coefficients = self.bernstein
        width = self.breaks.diff(dim=1)[..., None]
        for _ in range(times):
            degree = coefficients.shape[-1] - 1
            if degree == 0:
                return torch.zeros_like(coefficients)
            coefficients = degree * coefficients.diff(dim=-1) / width
        return coefficients


@torch.no_grad()
def edge_pieces(layer: KANLayer, knots: Tensor | None = None) -> EdgePieces:
    """The edges of a layer in float64, on given float64 knots `(in, knots)` or on the layer's own.

    Bernstein coefficient m of a piece is the blossom of its spline at k - m times its left end and m times its right
    end, which de Boor's algorithm computes by convex combinations of coefficients.
    """
    layer = deepcopy(layer).double()
    knots, order = layer.knots() if knots is None else knots, layer.spline_order
    linear = layer.extension == "linear"
    weights = layer.spline_weight[..., None] * layer.coefficients
    breaks, coefficients, around = knots[:, order : knots.shape[1] - order], weights, knots[:, 1:-1]
    if not linear:
        # Splines that do not exist have the coefficient zero, on knots of any spacing.
        beyond = torch.arange(1, order, dtype=knots.dtype)
        around = torch.cat([knots[:, :1] - beyond.flip(0), knots, knots[:, -1:] + beyond], dim=1)
        breaks, coefficients = knots, F.pad(weights, (order, order))
    local, active = around.unfold(1, 2 * order, 1), coefficients.unfold(2, order + 1, 1)
    bernstein = torch.stack([_blossom(local, active, right) for right in range(order + 1)], dim=-1)
    noise = ROUNDING * weights.abs().amax(-1)
    noise = torch.stack([noise, 2 * order * noise / breaks.diff(dim=1).amin(1)])
    return EdgePieces(breaks, bernstein, layer.base_weight.detach(), linear, noise)


def _blossom(knots: Tensor, coefficients: Tensor, right: int) -> Tensor:
    """De Boor's algorithm with `right` arguments at the right ends of pieces and the others at their left ends.

    `knots` `(in, pieces, 2 k)` around each piece, its ends in the middle; `coefficients` `(out, in, pieces, k + 1)`.
    """
    order = coefficients.shape[-1] - 1
    for level in range(1, order + 1):
        argument = knots[..., order - 1 if level <= order - right else order, None]
        low, high = knots[..., level - 1 : order], knots[..., order : 2 * order - level + 1]
        share = (argument - low) / (high - low)
        coefficients = (1 - share) * coefficients[..., :-1] + share * coefficients[..., 1:]
    return coefficients[..., 0]


@torch.no_grad()
def enclose(pieces: EdgePieces, low: Tensor, high: Tensor, order: Order, cells: int = CELLS) -> Range:
    """Bounds of phi (`order=0`) or phi' (`order=1`) over [low, high] for every edge; infinite where none is known."""
    least = torch.full((*pieces.base.shape, low.shape[1]), torch.inf, dtype=low.dtype)
    most, last = -least, pieces.breaks.shape[1]
    for number in range(last + 1):
        # Piece `number - 1` between two breaks; the first and the last are the lines beyond the grid.
        start = low if number == 0 else torch.maximum(low, pieces.breaks[:, number - 1, None])
        end = high if number == last else torch.minimum(high, pieces.breaks[:, number, None])
        exists, end = start <= end, torch.maximum(start, end)
        if 0 < number < last:
            found = _on_piece(pieces, number - 1, start, end, order, cells)
        else:
            found = _on_line(pieces, -1 if number else 0, start, end, order, cells)
        least = torch.where(exists, torch.minimum(least, found[0]), least)
        most = torch.where(exists, torch.maximum(most, found[1]), most)
    slack = ROUNDING * (1 + torch.maximum(least.abs(), most.abs())) + pieces.noise[order][..., None]
    # An undefined end of an interval, or 0 times infinity on the way, leaves nothing known.
    known = least <= most
    return torch.where(known, least - slack, -torch.inf), torch.where(known, most + slack, torch.inf)


def _on_piece(pieces: EdgePieces, number: int, start: Tensor, end: Tensor, order: Order, cells: int) -> Range:
    x = _cell_ends(start, end, cells)
    left = pieces.breaks[:, number, None, None]
    width = pieces.breaks[:, number + 1, None, None] - left
    curve = pieces.derivative(order)[:, :, number]
    z, k = (x - left) / width, curve.shape[-1] - 1
    basis = torch.stack([math.comb(k, m) * z**m * (1 - z) ** (k - m) for m in range(k + 1)], dim=-1)  # Bernstein's
    base = (F.silu, silu_slope)[order](x)
    values = torch.einsum("oim,ibcm->oibc", curve, basis) + pieces.base[..., None, None] * base
    bend = pieces.derivative(order + 2)[:, :, number].abs().amax(-1)
    bend = bend + pieces.base.abs() * (0.5, SILU_THIRD)[order]
    slack = bend[..., None] * ((end - start) / cells).square() / 8
    return values.amin(-1) - slack, values.amax(-1) + slack


def _on_line(pieces: EdgePieces, side: int, start: Tensor, end: Tensor, order: Order, cells: int) -> Range:
    """Beyond the grid the spline is a line; SiLU has a known range on every cell."""
    ends = (pieces.derivative(times)[:, :, side, side, None] for times in (0, 1))
    value, slope = (end if pieces.tangents else torch.zeros_like(end) for end in ends)
    base = pieces.base[..., None]
    if order == 1:
        slopes = [slope + base * silu for silu in slope_range("silu", start, end)]
        return torch.minimum(*slopes), torch.maximum(*slopes)
    x = _cell_ends(start, end, cells)
    from_end = x - pieces.breaks[:, side, None, None]
    line = value[..., None] + slope[..., None] * from_end
    silu = [base[..., None] * part for part in _range(F.silu, (-SILU_TURN,), x[..., :-1], x[..., 1:])]
    low, high = (pick(line[..., :-1], line[..., 1:]) + pick(*silu) for pick in (torch.minimum, torch.maximum))
    return low.amin(-1), high.amax(-1)


def _cell_ends(start: Tensor, end: Tensor, cells: int) -> Tensor:
    steps = torch.linspace(0, 1, cells + 1, dtype=start.dtype)
    return torch.lerp(start[..., None], end[..., None], steps)
