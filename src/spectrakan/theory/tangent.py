"""All Jacobians that a signal can have while the input moves in its ball, as one set, and the norms that bound it.

    Dx(u)  in  { J + F W :  ||W||_{sup -> 2} <= 1 }     for every u in the ball,     Q = F F^T.

J `(dim, inputs)` is one matrix, the middle; the rest lies in an ellipsoid with shape Q `(dim, dim)`. Linear maps act
on both without loss. A multiplier known only as s_i + e_i with |e_i| <= d_i leaves the middle s J and adds the
ellipsoid g² diag(d), g = ||d^{1/2} J||_{sup -> 2} + ||d^{1/2} F||_2; it vanishes with the ball.

Norms are bounded from above and widened by `ROUNDING`; what float64 cannot represent is infinite. From sup to Euclid
    ||J||_{sup -> 2}² <= (sum_i d_i) lambda_max(J diag(1/d) J^T)      for every d > 0;
a few steps of block coordinate ascent on the dual give a d close to the best. Proofs are in docs/theory.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

Shape = tuple[int, ...]
Linear = Callable[[Tensor], Tensor]
"""A linear map on fields `(channel, batch, *space)`."""

ROUNDING = 1e-9
SMALL = 128
"""Up to this size all eigenvalues are computed."""


@dataclass(frozen=True)
class Tangent:
    """A set of Jacobians; `shape` is `(channel, *space)` of the signal.

    `spread` is Q; `box` `(dim,)` bounds each row of F W, ||(F W)_i||_{sup -> 1} <= box_i <= Q_ii^{1/2}: what varies
    in one cell has a better bound there than from what varies everywhere. Both are zero while nothing varies.
    """

    middle: Tensor
    spread: Tensor
    box: Tensor
    shape: Shape

    @classmethod
    def exact(cls, middle: Tensor, shape: Shape) -> Tangent:
        """One Jacobian `(dim, inputs)` for the whole ball."""
        dim = middle.shape[0]
        return cls(middle, middle.new_zeros(dim, dim), middle.new_zeros(dim), shape)

    def reach(self) -> Tensor:
        """How fast each entry can change: sup over the set of the row's sum of sizes, `(dim,)`."""
        return nan_to_inf(self.middle.abs().sum(1) + self.box)

    def bound(self) -> Tensor:
        """Sup over the set of ||.||_{sup -> 2}, a scalar."""
        varies = torch.minimum(top_eigenvalue(self.spread).sqrt(), nan_to_inf(self.box.norm()))
        return sup_to_two(self.middle) + varies

    def through(self, linear: Linear) -> Tangent:
        """The same signal behind a linear map of fields."""
        middle, shape = _on_columns(linear, self.middle, self.shape)
        if not self.box.any():
            return Tangent.exact(middle, shape)
        half, _ = _on_columns(linear, self.spread, self.shape)
        whole, _ = _on_columns(linear, half.T, self.shape)
        whole = (whole + whole.T) / 2
        return Tangent(middle, whole, _rows(whole), shape)

    def pointwise(self, weight: Tensor) -> Tangent:
        """The same signal behind a map of channels `(out, channel)` that acts in every cell alike."""
        mapped = self.through(lambda field: torch.tensordot(weight, field, dims=([1], [0])))
        return mapped.boxed(self.box_behind(weight))

    def box_behind(self, weight: Tensor) -> Tensor:
        """The bounds of the rows behind a map of channels."""
        return (weight.abs() @ self.box.view(self.shape[0], -1)).flatten()

    def boxed(self, box: Tensor) -> Tangent:
        """With a second bound of every row."""
        return replace(self, box=torch.minimum(self.box, box))

    def times(self, matrix: Tensor) -> Tangent:
        """The same signal behind a matrix `(rows, dim)`; the result is a plain vector."""
        spread = matrix @ self.spread @ matrix.T
        tangent = Tangent(matrix @ self.middle, spread, _rows(spread), (matrix.shape[0],))
        return tangent.boxed(matrix.abs() @ self.box)

    def picked(self, indices: Tensor, shape: Shape) -> Tangent:
        """Entries by index, with repetitions."""
        return Tangent(self.middle[indices], self.spread[indices][:, indices], self.box[indices], shape)

    def multiplied(self, low: Tensor, high: Tensor) -> Tangent:
        """Entry i times any number of [low_i, high_i], `(dim,)` each."""
        centre, half = (low + high) / 2, (high - low) / 2
        spread = centre[:, None] * self.spread * centre
        scaled = Tangent(centre[:, None] * self.middle, spread, centre.abs() * self.box, self.shape)
        return scaled.widened(self.varied(half))

    def varied(self, half: Tensor) -> Variation:
        """All e x with |e_i| <= half_i: the smaller of two ellipsoids, and the box."""
        if bool((half == 0).all()):
            return Variation(half, half)
        box, root = half * self.reach(), half.sqrt()[:, None]
        size = sup_to_two(root * self.middle) + top_eigenvalue(root * self.spread * root.T).sqrt()
        # A box of half-widths b lies in the ellipsoid of shape diag(b) sum(b).
        around_box, around_ball = box * box.sum(), half * size.square()
        return Variation(around_box if around_box.sum() < around_ball.sum() else around_ball, box)

    def widened(self, by: Variation) -> Tangent:
        """Plus what varies."""
        if bool((by.diagonal == 0).all()):
            return self
        old, new = _shares(self.spread.trace(), by.diagonal.sum())
        spread = old * self.spread
        spread.diagonal().add_(new * by.diagonal)
        return replace(self, spread=spread, box=self.box + by.box)

    def __add__(self, other: Tangent) -> Tangent:
        first, second = _shares(self.spread.trace(), other.spread.trace())
        spread = first * self.spread + second * other.spread
        return Tangent(self.middle + other.middle, spread, self.box + other.box, self.shape)


@dataclass(frozen=True)
class Variation:
    """A set of Jacobians around zero: an ellipsoid with a diagonal shape `(dim,)`, and a box `(dim,)`."""

    diagonal: Tensor
    box: Tensor


def ball(like: Tensor, size: Tensor) -> Tangent:
    """A Euclidean ball around zero of Jacobians of one vector, of the shape of `like` `(dim, inputs)`."""
    sizes = size.expand(like.shape[0])
    return Tangent(torch.zeros_like(like), torch.diag(sizes.square()), sizes.clone(), (like.shape[0],))


def side_by_side(parts: list[Tangent]) -> Tangent:
    """Vectors one after another, each varying independently: the ellipsoid of their sum has n times each shape."""
    middle, box = (torch.cat(pieces) for pieces in zip(*((part.middle, part.box) for part in parts), strict=True))
    count = sum(bool(part.box.any()) for part in parts)
    return Tangent(middle, count * torch.block_diag(*(part.spread for part in parts)), box, (middle.shape[0],))


def _shares(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Factors 1 + p and 1 + 1/p with which two ellipsoids' shapes sum to one around their sum; p from the traces.

    Every p > 0 is correct. Limits of p keep infinite factors away from traces of zero.
    """
    ratio = torch.nan_to_num(second.sqrt() / first.sqrt(), nan=1.0).clamp(1e-12, 1e12)
    return 1 + ratio, 1 + 1 / ratio


def _on_columns(linear: Linear, columns: Tensor, shape: Shape) -> tuple[Tensor, Shape]:
    """A map of fields on every column of `(dim, count)`."""
    fields = columns.view(*shape, -1).movedim(-1, 1).contiguous()
    mapped = linear(fields)
    return mapped.movedim(1, -1).reshape(-1, columns.shape[1]), (mapped.shape[0], *mapped.shape[2:])


def _rows(spread: Tensor) -> Tensor:
    """Q_ii^{1/2}."""
    return spread.diagonal().clamp_min(0).sqrt()


def nan_to_inf(bound: Tensor) -> Tensor:
    """A bound whose computation met 0 times infinity is unknown: infinite."""
    return torch.nan_to_num(bound, nan=math.inf, posinf=math.inf, neginf=-math.inf)


def spectral_norm(matrix: Tensor) -> Tensor:
    """||.||_2 of matrices `(.., rows, n)`, differentiable; infinite where an entry is not finite: `(..)`."""
    finite = matrix.isfinite().all(-1).all(-1)
    norm: Tensor = torch.linalg.matrix_norm(torch.where(finite[..., None, None], matrix, 0.0), ord=2)
    return torch.where(finite, norm, math.inf)


def top_eigenvalue(matrix: Tensor) -> Tensor:
    """An upper bound of the largest eigenvalue of a positive semidefinite matrix, or of each in a batch.

    >>> bool(abs(top_eigenvalue(torch.diag(torch.tensor([1.0, 3.0]).double())) - 3) < 1e-6)
    True
    """
    unit, scale = _unit_scale(matrix)
    if matrix.shape[-1] <= SMALL or matrix.ndim > 2:
        exact: Tensor = torch.linalg.eigvalsh(unit)[..., -1].clamp_min(0)
        return nan_to_inf(exact * scale * (1 + ROUNDING))
    guess = _power_iteration(unit)
    step, diagonal = 1.01, torch.eye(matrix.shape[0], dtype=matrix.dtype)
    while True:
        bound = guess * step
        _, failed = torch.linalg.cholesky_ex(bound * diagonal - unit)
        if not bool(failed):
            return nan_to_inf(bound * scale * (1 + ROUNDING))
        step *= step


def sup_to_two(jacobian: Tensor) -> Tensor:
    """An upper bound of max ||J x||_2 over |x_i| <= 1, for a matrix `(.., rows, n)` or a batch of them: `(..)`.

    >>> round(float(sup_to_two(torch.tensor([[1.0, -2.0]]).double())), 6)  # one row: the sum of sizes
    3.0
    """
    unit, scale = _unit_scale(jacobian)
    bound: Tensor = unit.abs().sum(-1).norm(dim=-1)
    rows, inputs = jacobian.shape[-2:]
    if rows > 1:
        shares = _dual_shares(unit)
        scaled = unit / shares.sqrt()[..., None, :]
        gram = scaled @ scaled.mT if rows <= inputs else scaled.mT @ scaled
        bound = torch.minimum(bound, (shares.sum(-1) * top_eigenvalue(gram)).sqrt())
    return nan_to_inf(bound * scale * (1 + ROUNDING))


def _unit_scale(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices with entries of at most one, and their scales `(..)`: undefined where an entry is not finite."""
    scale = matrix.abs().amax((-2, -1))
    usable = (scale > 0) & scale.isfinite()
    unit = torch.where(usable[..., None, None], matrix / scale[..., None, None], 0.0)
    return unit, torch.where(scale.isfinite(), scale, math.nan)


def _dual_shares(jacobian: Tensor, steps: int = 8, columns: int = 6) -> Tensor:
    """The weights d of the file's head, `(.., n)`: d_i = ||(J^T J U)_i|| with rows of U of unit length."""
    unit = _random(jacobian.shape[-1], columns).expand(*jacobian.shape[:-2], -1, -1)
    sizes = unit[..., 0]
    for _ in range(steps):
        pulled = jacobian.mT @ (jacobian @ unit)
        sizes = pulled.norm(dim=-1)
        unit = pulled / sizes.clamp_min(1e-300)[..., None]
    # Inputs without influence still need a positive share.
    return sizes + 1e-4 * sizes.mean(-1, keepdim=True) + 1e-300


def _power_iteration(matrix: Tensor, steps: int = 30, columns: int = 4) -> Tensor:
    block = _random(matrix.shape[0], columns)
    for _ in range(steps):
        block = torch.linalg.qr(matrix @ block).Q
    small = block.T @ (matrix @ block)
    top: Tensor = torch.linalg.eigvalsh((small + small.T) / 2)[-1].clamp_min(1e-300)
    return top


def _random(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
