"""Theorem 3.2 constant for constant, and the same without its exponentials.

With S = (M_k Lip(q) L_KAN L_P + M_q L_k) / c and M_s = M_q M_k / c, c = sqrt(d_a), the paper's proof comes to
    L_m = exp(2 M_s) (L_v + M_v S) + exp(4 M_s) M_v S,
while E_alpha[Dv] + Cov_alpha(Ds, v) gives L_v + M_v S: smaller by exp(2 M_s) at least.
Both hold for any c (`nn.modulation`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Constants:
    """The constants of one head on one region, in the theorem's names; inputs in the sup norm."""

    M_q: float
    M_k: float
    M_v: float
    L_k: float
    L_v: float
    Lip_q: float
    L_KAN: float
    L_P: float
    divisor: float
    """c, what scores are divided by."""

    @property
    def S(self) -> float:  # noqa: N802 - the paper's symbol
        """How fast scores can move."""
        return (self.M_k * self.Lip_q * self.L_KAN * self.L_P + self.M_q * self.L_k) / self.divisor

    @property
    def M_s(self) -> float:  # noqa: N802 - the paper's symbol
        """How large scores can be."""
        return self.M_q * self.M_k / self.divisor

    def covariance(self) -> float:
        """L_v + M_v S.

        >>> Constants(M_q=1, M_k=0, M_v=1, L_k=1, L_v=2, Lip_q=1, L_KAN=1, L_P=1, divisor=2).covariance()
        2.5
        """
        return self.L_v + self.M_v * self.S

    def log_paper(self) -> float:
        """Natural logarithm of the paper's L_m, which may be too large for a float."""
        first = 2 * self.M_s + _log(self.L_v + self.M_v * self.S)
        second = 4 * self.M_s + _log(self.M_v * self.S)
        top = max(first, second)
        return top if top == -math.inf else top + math.log(math.exp(first - top) + math.exp(second - top))

    def as_mapping(self) -> dict[str, float]:
        """All numbers by their names."""
        return {**asdict(self), "S": self.S, "M_s": self.M_s}


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
