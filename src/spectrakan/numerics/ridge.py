"""Linear least squares with a penalty, in closed form, from second moments.

With centred features X `(N, p)` and targets Y `(N, q)`, G = X^T X and C = X^T Y:
    W(l) = (G + l I)^{-1} C
and, with G = V diag(g) V^T and c_i the rows of V^T C, the residual and the degrees of freedom of every l at once:
    |Y - X W|^2 = |Y|^2 - sum_i |c_i|^2 (g_i + 2 l) / (g_i + l)^2,     d(l) = 1 + sum_i g_i / (g_i + l).
Generalised cross-validation (Golub, Heath, Wahba 1979) takes the l with the least |Y - X W|^2 / (N - d(l))^2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def ridge_weights(gram: Float[Tensor, "p p"], cross: Float[Tensor, "p q"], penalty: float) -> Float[Tensor, "p q"]:
    """(G + l I)^{-1} C for one penalty l > 0."""
    shifted = gram + penalty * torch.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    return torch.cholesky_solve(cross, torch.linalg.cholesky(shifted))


def best_penalty(
    gram: Float[Tensor, "p p"],
    cross: Float[Tensor, "p q"],
    squares: float,
    count: int,
    penalties: Sequence[float],
) -> float:
    """The penalty with the least generalised cross-validation score; `squares` is |Y|^2, `count` is N."""
    spectrum, vectors = torch.linalg.eigh(gram)
    spectrum = spectrum.clamp_min(0)
    energy = (vectors.T @ cross).square().sum(1)
    scores = []
    for penalty in penalties:
        explained = energy * (spectrum + 2 * penalty) / (spectrum + penalty).square()
        residual = max(squares - float(explained.sum()), 0.0)
        left = count - 1 - float((spectrum / (spectrum + penalty)).sum())
        # A fit with no degree of freedom left says nothing about new data.
        scores.append(residual / left**2 if left > 1e-3 * count else float("inf"))
    return penalties[scores.index(min(scores))]
