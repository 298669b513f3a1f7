"""Norms of matrices, bounded from above: largest singular values, and from the sup norm to the Euclidean norm.

Bounds are widened by `ROUNDING`; what float64 cannot represent is infinite. From sup to Euclid
    ||J||_{sup -> 2}² <= (sum_i d_i) lambda_max(J diag(1/d) J^T)      for every d > 0;
a few steps of block coordinate ascent on the dual give a d close to the best. Proofs are in docs/theory.md.
"""

import math

import torch
from torch import Tensor

ROUNDING = 1e-9
SMALL = 128
"""Up to this size all eigenvalues are computed."""


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


def norm_of_gram(gram: Tensor) -> Tensor:
    """An upper bound of ||A||_2 from A A^T, `(.., n, n)`, whose entries are sums with rounding errors."""
    rounding = 1e-2 * ROUNDING * gram.diagonal(dim1=-2, dim2=-1).sum(-1)
    return nan_to_inf((top_eigenvalue(gram) + rounding).sqrt())


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
