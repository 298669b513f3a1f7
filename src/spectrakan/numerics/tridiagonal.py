"""Symmetric diffusion-like systems on a ring of cells, solved by cyclic reduction for a whole batch at once.

Shapes: m cells along the first axis, any batch axes after it. The matrix has `diagonal[i]` on the diagonal
and `-coupling[i]` between cells i and i + 1; the last coupling closes the ring, and is 0 on an open line.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class RingFactors:
    """Factors of the elimination of every second cell, level by level."""

    levels: tuple[tuple[Tensor, Tensor, Tensor], ...]
    """Per level, of the odd cells: 1 / diagonal, and both couplings divided by the diagonal."""
    last: Tensor
    """1 / diagonal of the cells that remain."""


def factor_ring(diagonal: Tensor, coupling: Tensor, *, num_levels: int | None = None) -> RingFactors:
    """Eliminate odd cells until one is left, or `num_levels` times if the rest is then as good as diagonal.

    With q = e_left / d_odd and s = e_right / d_odd, the even cells keep
    d' = d - e_left q - e_right s and couple by e' = q e_right; the ratio e / d squares at every level,
    unless the number of cells is odd, when the elimination goes on to the end.
    """
    levels: list[tuple[Tensor, Tensor, Tensor]] = []
    while diagonal.shape[0] > 1 and (num_levels is None or len(levels) < num_levels):
        size = diagonal.shape[0]
        odd = size // 2
        inverse = diagonal[1::2].reciprocal()
        left, right = coupling[0 : 2 * odd : 2], coupling[1 : 2 * odd : 2]
        to_left, to_right = left * inverse, right * inverse
        levels.append((inverse, to_left, to_right))
        shrunk = diagonal[0::2].clone()
        shrunk[:odd].addcmul_(left, to_left, value=-1.0)
        _add_product_to_right(shrunk, right, to_right, size, -1.0)
        linked = to_left * right
        if size % 2 == 0:
            coupling = linked
        else:
            # The link from the last cell to the first passes no eliminated cell and keeps its strength.
            coupling, num_levels = torch.cat([linked, coupling[-1:]]), None
        diagonal = shrunk
    # One cell alone on a ring is its own neighbour on both sides.
    last = diagonal - 2.0 * coupling if diagonal.shape[0] == 1 else diagonal
    return RingFactors(levels=tuple(levels), last=last.reciprocal())


def solve_ring(factors: RingFactors, right_side: Tensor) -> Tensor:
    """Solve for one right-hand side `(m, ...)`; the factors serve any number of them.

    >>> ring = factor_ring(torch.full((4,), 4.0), torch.ones(4))
    >>> solve_ring(ring, torch.full((4,), 2.0)).round(decimals=4)
    tensor([1., 1., 1., 1.])
    """
    odd_parts = []
    current = right_side
    for inverse, to_left, to_right in factors.levels:
        size = current.shape[0]
        odd = current[1::2]
        even = current[0::2].clone()
        even[: size // 2].addcmul_(to_left, odd)
        _add_product_to_right(even, to_right, odd, size, 1.0)
        odd_parts.append(odd * inverse)
        current = even
    solution = current * factors.last
    for (_, to_left, to_right), odd in zip(reversed(factors.levels), reversed(odd_parts), strict=True):
        half = odd.shape[0]
        size = half + solution.shape[0]
        odd.addcmul_(to_left, solution[:half])
        inner = solution.shape[0] - 1
        odd[:inner].addcmul_(to_right[:inner], solution[1:])
        if size % 2 == 0:
            odd[-1].addcmul_(to_right[-1], solution[0])
        whole = solution.new_empty((size, *solution.shape[1:]))
        whole[0::2], whole[1::2] = solution, odd
        solution = whole
    return solution


def levels_needed(ratio: float, *, tolerance: float = 1e-16) -> int | None:
    """Levels after which the couplings are below `tolerance` of the diagonal; None: eliminate to the end.

    `ratio` = max of coupling / diagonal, which a level takes to at most r^2 / (1 - 2 r^2).

    >>> levels_needed(0.05)
    4
    """
    for level in range(64):
        if ratio <= tolerance:
            return level
        if not ratio < 0.49 or math.isnan(ratio):
            return None
        ratio = ratio**2 / (1.0 - 2.0 * ratio**2)
    return None


def _add_product_to_right(even: Tensor, first: Tensor, second: Tensor, size: int, sign: float) -> None:
    """Add the products at odd cells 2j + 1 to cells 2j + 2; the last odd cell's goes round to cell 0."""
    inner = even.shape[0] - 1
    even[1:].addcmul_(first[:inner], second[:inner], value=sign)
    if size % 2 == 0:
        even[0].addcmul_(first[-1], second[-1], value=sign)
