"""All Jacobians that a signal can have while the input moves in its ball, as one set.

    Dx(u)  in  { J + F W :  ||W||_{sup -> 2} <= 1 }     for every u in the ball,     Q = F F^T.

J `(dim, inputs)` is one matrix, the middle; the rest is held by an ellipsoid with shape Q `(dim, dim)`.
Linear maps act on both without loss. A multiplier known only as s_i + e_i with |e_i| <= d_i (the slope of a
nonlinearity over the interval it meets, a factor of a product) leaves the middle s J and adds the ellipsoid
    e x = d^{1/2} (e/d) d^{1/2} x  of shape g² diag(d),     g = ||d^{1/2} J||_{sup -> 2} + ||d^{1/2} F||_2.
As the ball shrinks so do all d, and what remains is the Jacobian at its centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spectrakan.theory.norms import sup_to_two, top_eigenvalue

Shape = tuple[int, ...]
Linear = Callable[[Tensor], Tensor]
"""A linear map on fields `(channel, batch, *space)`."""


@dataclass(frozen=True)
class Tangent:
    """A set of Jacobians; `shape` is `(channel, *space)` of the signal, `spread` None while nothing varies.

    `spread` is Q; `box` `(dim,)` holds each row of F W by itself, ||(F W)_i||_{sup -> 1} <= box_i <= Q_ii^{1/2}: what
    varies in one cell is bounded there better than by what varies everywhere.
    """

    middle: Tensor
    spread: Tensor | None
    box: Tensor | None
    shape: Shape

    def reach(self) -> Tensor:
        """How fast each entry can change: sup over the set of the row's sum of sizes, `(dim,)`."""
        rows = self.middle.abs().sum(1)
        return rows if self.box is None else rows + self.box

    def bound(self) -> Tensor:
        """Sup over the set of ||.||_{sup -> 2}, a scalar."""
        total = sup_to_two(self.middle)
        if self.spread is None or self.box is None:
            return total
        return total + torch.minimum(top_eigenvalue(self.spread).sqrt(), self.box.norm())

    def through(self, linear: Linear) -> Tangent:
        """The same signal behind a linear map of fields."""
        middle, shape = _on_columns(linear, self.middle, self.shape)
        if self.spread is None:
            return Tangent(middle, None, None, shape)
        half, _ = _on_columns(linear, self.spread, self.shape)
        whole, _ = _on_columns(linear, half.T, self.shape)
        whole = (whole + whole.T) / 2
        return Tangent(middle, whole, _rows(whole), shape)

    def pointwise(self, weight: Tensor) -> Tangent:
        """The same signal behind a map of channels `(out, channel)` that acts in every cell alike."""
        mapped = self.through(lambda field: torch.tensordot(weight, field, dims=([1], [0])))
        return mapped.boxed(self.box_behind(weight))

    def box_behind(self, weight: Tensor) -> Tensor | None:
        """What holds the rows behind a map of channels."""
        return None if self.box is None else (weight.abs() @ self.box.view(self.shape[0], -1)).flatten()

    def boxed(self, box: Tensor | None) -> Tangent:
        """With rows known to be held by another box too."""
        if box is None or self.box is None:
            return self
        return replace(self, box=torch.minimum(self.box, box))

    def times(self, matrix: Tensor) -> Tangent:
        """The same signal behind a matrix `(rows, dim)`; the result is a plain vector."""
        shape = (matrix.shape[0],)
        if self.spread is None or self.box is None:
            return Tangent(matrix @ self.middle, None, None, shape)
        spread = matrix @ self.spread @ matrix.T
        return Tangent(matrix @ self.middle, spread, _rows(spread), shape).boxed(matrix.abs() @ self.box)

    def picked(self, places: Tensor, shape: Shape) -> Tangent:
        """Entries by number, repeated at will."""
        if self.spread is None or self.box is None:
            return Tangent(self.middle[places], None, None, shape)
        return Tangent(self.middle[places], self.spread[places][:, places], self.box[places], shape)

    def multiplied(self, low: Tensor, high: Tensor) -> Tangent:
        """Entry i times any number of [low_i, high_i], `(dim,)` each."""
        centre, half = (low + high) / 2, (high - low) / 2
        middle = centre[:, None] * self.middle
        if self.spread is None or self.box is None:
            return Tangent(middle, None, None, self.shape).widened(self.varied(half))
        spread = centre[:, None] * self.spread * centre
        return Tangent(middle, spread, centre.abs() * self.box, self.shape).widened(self.varied(half))

    def varied(self, half: Tensor) -> Variation:
        """What e x spans for all |e_i| <= half_i: the smaller of two ellipsoids, and the box."""
        box = half * self.reach()
        if not bool((half > 0).any()):
            return Variation(half, box)
        root = half.sqrt()[:, None]
        size = sup_to_two(root * self.middle)
        if self.spread is not None:
            size = size + top_eigenvalue(root * self.spread * root.T).sqrt()
        # A box of half-widths b lies in the ellipsoid of shape diag(b) sum(b).
        around_box, around_ball = box * box.sum(), half * size.square()
        return Variation(around_box if around_box.sum() < around_ball.sum() else around_ball, box)

    def widened(self, by: Variation) -> Tangent:
        """Plus what varies."""
        if not bool(by.diagonal.sum() > 0):
            return self
        if self.spread is None or self.box is None:
            return replace(self, spread=torch.diag(by.diagonal), box=by.box)
        old, new = _shares(self.spread.trace(), by.diagonal.sum())
        spread = old * self.spread
        spread.diagonal().add_(new * by.diagonal)
        return replace(self, spread=spread, box=self.box + by.box)

    def __add__(self, other: Tangent) -> Tangent:
        middle = self.middle + other.middle
        if self.spread is None or self.box is None:
            return replace(other, middle=middle)
        if other.spread is None or other.box is None:
            return replace(self, middle=middle)
        first, second = _shares(self.spread.trace(), other.spread.trace())
        return Tangent(middle, first * self.spread + second * other.spread, self.box + other.box, self.shape)


@dataclass(frozen=True)
class Variation:
    """A set of Jacobians around zero: an ellipsoid with a diagonal shape `(dim,)`, and a box `(dim,)`."""

    diagonal: Tensor
    box: Tensor


def identity(shape: Shape) -> Tangent:
    """The input itself."""
    size = torch.Size(shape).numel()
    return Tangent(torch.eye(size, dtype=torch.float64), None, None, shape)


def _shares(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Factors with which two ellipsoids' shapes sum to one around their sum: 1 + 1/p and 1 + p, p by the traces."""
    first, second = first.clamp_min(1e-300), second.clamp_min(1e-300)
    ratio = (second / first).sqrt()
    return 1 + ratio, 1 + 1 / ratio


def _on_columns(linear: Linear, columns: Tensor, shape: Shape) -> tuple[Tensor, Shape]:
    """A map of fields on every column of `(dim, count)`."""
    fields = columns.view(*shape, -1).movedim(-1, 1).contiguous()
    mapped = linear(fields)
    return mapped.movedim(1, -1).reshape(-1, columns.shape[1]), (mapped.shape[0], *mapped.shape[2:])


def _rows(spread: Tensor) -> Tensor:
    """Q_ii^{1/2}."""
    return spread.diagonal().clamp_min(0).sqrt()
