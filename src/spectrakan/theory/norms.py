"""Norms of matrices, bounded from above: a guess is made fast, then proved.

A largest eigenvalue is guessed by power iteration and proved by a Cholesky factorisation, which exists exactly where
a matrix is positive definite. The norm from sup to Euclid, max ||J x||_2 over |x_i| <= 1, is hard to compute, but
    ||J||_{sup -> 2}² <= (sum_i d_i) lambda_max(J diag(1/d) J^T)      for every d > 0,
since x^T G x <= lambda sum_i d_i x_i² where G <= lambda diag(d); the best d comes within pi/2 (Nesterov 1998), and
the d of a few steps of block coordinate ascent on the dual, d_i = ||(J^T J U)_i|| with rows of U of unit length,
comes close to it. Rounding is covered by widening every result by `ROUNDING`.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDING = 1e-9
SMALL = 128
"""Up to this size eigenvalues are computed one and all."""


def top_eigenvalue(matrix: Tensor) -> Tensor:
    """An upper bound of the largest eigenvalue of a positive semidefinite matrix, or of each in a batch.

    >>> bool(abs(top_eigenvalue(torch.diag(torch.tensor([1.0, 3.0]).double())) - 3) < 1e-6)
    True
    """
    if matrix.shape[-1] <= SMALL or matrix.ndim > 2:
        exact: Tensor = torch.linalg.eigvalsh(matrix)[..., -1].clamp_min(0) * (1 + ROUNDING)
        return exact
    guess = _power_iteration(matrix)
    step, identity = 1.01, torch.eye(matrix.shape[0], dtype=matrix.dtype)
    while True:
        bound = guess * step
        _, failed = torch.linalg.cholesky_ex(bound * identity - matrix)
        if not bool(failed):
            return bound * (1 + ROUNDING)
        step *= step


def sup_to_two(jacobian: Tensor, *, steps: int = 8, columns: int = 6) -> Tensor:
    """An upper bound of max ||J x||_2 over |x_i| <= 1, for a matrix `(.., rows, n)` or a batch of them: `(..)`.

    >>> float(sup_to_two(torch.tensor([[1.0, -2.0]]).double()))  # one row: the sum of sizes
    3.0
    """
    plain: Tensor = jacobian.abs().sum(-1).norm(dim=-1)
    if jacobian.shape[-2] == 1:
        return plain
    shares = _dual_shares(jacobian, steps, columns)
    scaled = jacobian / shares.sqrt()[..., None, :]
    rows, inputs = jacobian.shape[-2:]
    gram = scaled @ scaled.mT if rows <= inputs else scaled.mT @ scaled
    bound = (shares.sum(-1) * top_eigenvalue(gram)).sqrt()
    return torch.minimum(plain, bound) * (1 + ROUNDING)


def _dual_shares(jacobian: Tensor, steps: int, columns: int) -> Tensor:
    """D of the file's head, `(.., n)`."""
    inputs = jacobian.shape[-1]
    source = torch.Generator().manual_seed(0)
    start = torch.randn(inputs, columns, dtype=jacobian.dtype, generator=source)
    unit = start.expand(*jacobian.shape[:-2], inputs, columns)
    sizes = unit[..., 0].abs()
    for _ in range(steps):
        pulled = jacobian.mT @ (jacobian @ unit)
        sizes = pulled.norm(dim=-1)
        unit = pulled / sizes.clamp_min(1e-300)[..., None]
    # Inputs that count for nothing still need a positive share.
    return sizes + 1e-4 * sizes.mean(-1, keepdim=True) + 1e-300


def _power_iteration(matrix: Tensor, steps: int = 30, columns: int = 4) -> Tensor:
    source = torch.Generator().manual_seed(0)
    block = torch.randn(matrix.shape[0], columns, dtype=matrix.dtype, generator=source)
    for _ in range(steps):
        block = torch.linalg.qr(matrix @ block).Q
    small = block.T @ (matrix @ block)
    top: Tensor = torch.linalg.eigvalsh((small + small.T) / 2)[-1].clamp_min(1e-300)
    return top
