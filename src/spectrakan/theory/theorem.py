"""Theorem 3.2: its constants on a region, the paper's L_m, and the same without exponentials.

With S = (M_k Lip(q) L_KAN L_P + M_q L_k) / c and M_s = M_q M_k / c, c = sqrt(d_a), the paper's proof gives
    L_m = exp(2 M_s) (L_v + M_v S) + exp(4 M_s) M_v S,
while E_alpha[Dv] + Cov_alpha(Ds, v) gives L_v + M_v S: smaller by exp(2 M_s) at least.
Both hold for any c (`nn.modulation`).
"""

import math
from dataclasses import asdict, dataclass

import numpy as np
from torch import Tensor, nn

from spectrakan.nn.kan import KAN, SILU_LIPSCHITZ
from spectrakan.nn.modulation import GlobalModulation
from spectrakan.theory.kan_bounds import box_bound
from spectrakan.theory.norms import nan_to_inf, spectral_norm
from spectrakan.theory.rules import Motion


@dataclass(frozen=True)
class Constants:
    """The constants on one region, in the theorem's names; inputs in the sup norm."""

    M_q: float
    M_k: float
    M_v: float
    L_k: float
    L_v: float
    Lip_q: float
    L_KAN: float
    L_P: float
    divisor: float
    """c, the divisor of the scores."""

    @property
    def S(self) -> float:  # noqa: N802 - the paper's symbol
        """How fast scores can move."""
        return (self.M_k * self.Lip_q * self.L_KAN * self.L_P + self.M_q * self.L_k) / self.divisor

    @property
    def M_s(self) -> float:  # noqa: N802 - the paper's symbol
        """How large scores can be."""
        return self.M_q * self.M_k / self.divisor

    def covariance(self) -> float:
        """L_v + M_v S; infinite where a constant is.

        >>> Constants(M_q=1, M_k=0, M_v=1, L_k=1, L_v=2, Lip_q=1, L_KAN=1, L_P=1, divisor=2).covariance()
        2.5
        """
        return _or_infinite(self.L_v + self.M_v * self.S)

    def log_paper(self) -> float:
        """Natural logarithm of the paper's L_m, which may be too large for a float."""
        score = self.M_v * self.S
        first, second = 2 * self.M_s + _log(self.L_v + score), 4 * self.M_s + _log(score)
        return float(np.logaddexp(_or_infinite(first), _or_infinite(second)))

    def as_mapping(self) -> dict[str, float]:
        """All numbers by their names."""
        return {**asdict(self), "S": self.S, "M_s": self.M_s}


def _log(value: float) -> float:
    return math.log(value) if value > 0 else (math.inf if math.isnan(value) else -math.inf)


def _or_infinite(value: float) -> float:
    """0 times infinity leaves a bound unknown: infinite."""
    return math.inf if math.isnan(value) else value


def certified_constants(
    network: nn.Module, gml: GlobalModulation, summary_rate: float, summary: Motion, token: Motion, features: Motion
) -> Constants:
    """Constants that hold in the whole ball of the motions; `network` makes the token from the summary.

    Summary and token `(1, numbers)`, features `(1, N, channel)`.
    """
    key_size, key_rate = _largest_cell(gml.key[0], features)
    value_size, value_rate = _largest_cell(gml.value[0], features)
    moved = (token.reach @ gml.query.weight.abs().T).norm()
    return Constants(
        M_q=float(gml.query(token.centre).norm() + moved),
        M_k=key_size,
        M_v=value_size,
        L_k=key_rate,
        L_v=value_rate,
        Lip_q=float(spectral_norm(gml.query.weight)),
        L_KAN=float(box_bound(network, summary.low, summary.high))
        if isinstance(network, KAN)
        else _layers_norm(network),
        L_P=summary_rate,
        divisor=gml.divisor,
    )


def _largest_cell(matrix: Tensor, features: Motion) -> tuple[float, float]:
    """Sup over cells and ball of the Euclidean size of `matrix` f(y), and of its rate."""
    size = (features.centre @ matrix.T).norm(dim=-1) + (features.reach @ matrix.abs().T).norm(dim=-1)
    return float(nan_to_inf(size).amax()), float(nan_to_inf((features.rate @ matrix.abs().T).norm(dim=-1)).amax())


def _layers_norm(network: nn.Module) -> float:
    """Product of the layers' norms: of an MLP with SiLU between them, or of the identity."""
    layers = list(network.modules())
    norms = [float(spectral_norm(layer.weight)) for layer in layers if isinstance(layer, nn.Linear)]
    return math.prod(norms) * SILU_LIPSCHITZ ** sum(isinstance(layer, nn.SiLU) for layer in layers)
