"""Linear least squares with a penalty, in closed form, from second moments.

With centred features X `(N, p)` and targets Y `(N, q)`, G = X^T X and C = X^T Y:
    W(l) = (G + l I)^{-1} C.
The penalty l is chosen by leaving out one block of neighbouring samples at a time. Neighbours in time are correlated,
so leaving out single samples (or its closed form) would favour fits that only interpolate in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.numerics.float64 import to_float64


@dataclass(frozen=True)
class RegressionSums:
    """Sums over samples: their number, of features and targets, of products and of squared targets."""

    count: int
    features: Tensor
    targets: Tensor
    gram: Tensor
    cross: Tensor
    squares: float

    @classmethod
    def of(cls, features: Float[Tensor, "samples p"], targets: Float[Tensor, "samples q"]) -> RegressionSums:
        """The sums over some samples, in float64."""
        x, y = to_float64(features), to_float64(targets)
        return cls(len(x), x.sum(0), y.sum(0), x.T @ x, x.T @ y, float(y.square().sum()))

    def plus(self, other: RegressionSums, sign: int = 1) -> RegressionSums:
        """Sums over both sets, or with sign -1 over what is left without the other."""
        pairs = ((getattr(self, entry.name), getattr(other, entry.name)) for entry in fields(self))
        return RegressionSums(*(mine + sign * its for mine, its in pairs))

    def means(self) -> tuple[Tensor, Tensor]:
        """Mean features and mean targets."""
        return self.features / self.count, self.targets / self.count

    def about(self, centre: Tensor, middle: Tensor) -> tuple[Tensor, Tensor, float]:
        """G, C and |Y|^2 with `centre` taken from the features and `middle` from the targets."""
        gram = self.gram - torch.outer(self.features, centre) - torch.outer(centre, self.features)
        cross = self.cross - torch.outer(self.features, middle) - torch.outer(centre, self.targets)
        squares = self.squares - 2 * float(middle @ self.targets) + self.count * float(middle @ middle)
        shift = self.count * torch.outer(centre, middle)
        return gram + self.count * torch.outer(centre, centre), cross + shift, squares


def ridge_weights(gram: Float[Tensor, "p p"], cross: Float[Tensor, "p q"], penalty: float) -> Float[Tensor, "p q"]:
    """(G + l I)^{-1} C for one penalty l > 0."""
    shifted = gram + penalty * torch.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    return torch.cholesky_solve(cross, torch.linalg.cholesky(shifted))


def best_penalty(blocks: Sequence[RegressionSums], penalties: Sequence[float]) -> float:
    """The penalty whose fits to all blocks but one predict the one left out best, summed over blocks."""
    total = reduce(RegressionSums.plus, blocks)
    errors = [0.0] * len(penalties)
    for block in blocks:
        rest = total.plus(block, sign=-1)
        centre, middle = rest.means()
        gram, cross, _ = rest.about(centre, middle)
        spectrum, vectors = torch.linalg.eigh(gram)
        inner = vectors.T @ cross
        left_out, towards, squares = block.about(centre, middle)
        left_out, towards = vectors.T @ left_out @ vectors, vectors.T @ towards
        for index, penalty in enumerate(penalties):
            weights = inner / (spectrum.clamp_min(0) + penalty)[:, None]
            errors[index] += (
                squares - 2 * float((weights * towards).sum()) + float(((left_out @ weights) * weights).sum())
            )
    return penalties[errors.index(min(errors))]
