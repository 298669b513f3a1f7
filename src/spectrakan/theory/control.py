"""Lipschitz-controlled training: what keeps the slopes of a KAN low, as part of the loss and as a cap.

Controlled is the product bound of `kan_bounds`, Lip(KAN) <= prod_l ||E_l||_2 with E_l the bounds of layer l's edges.
It follows from the weights alone, so it holds for all inputs. Edges are bounded by `hull` or by Lemma 3.1 (`edges`);
the lemma's bound is many times larger, so the same cap on it leaves far less slope.
"""

import copy
import math
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.nn.kan import KAN
from spectrakan.theory.kan_bounds import EDGE_BOUNDS, layers_of, product_bound

Measure = Literal["hull", "lemma"]
ROUNDING = 1e-5
"""How far below the cap a projection goes, so that no other order of summing comes out above it."""


@settings
class LipschitzSettings:
    """How steep the token's KAN may become; with the defaults nothing is controlled."""

    cap: Annotated[float, Field(gt=0.0)] | None = None
    """Largest certified bound of the KAN; after every step its slopes are scaled down to it where they are above."""
    penalty: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of log(1 + bound of the KAN) in the loss."""
    measure: Measure = "hull"
    """Bound of an edge that is capped and penalised: `hull` of its derivative's coefficients, or Lemma 3.1's."""

    @property
    def active(self) -> bool:
        """Whether anything is controlled at all."""
        return self.cap is not None or self.penalty > 0


def control_penalty(kan: KAN, config: LipschitzSettings) -> Float[Tensor, ""]:
    """What control adds to the loss; the logarithm gives every bound, however large, a gradient of usable size."""
    return config.penalty * torch.log1p(product_bound(kan, config.measure))


@torch.no_grad()
def certified_bound(kan: KAN, measure: Measure = "hull") -> float:
    """The product bound in float64, the larger one of two readings of the knots.

    Knots are sums of spacings; a float32 model computes them in float32, a certificate may do so in float64.
    """
    return math.prod(_certified_norms(kan, measure))


@torch.no_grad()
def cap_slopes(kan: KAN, cap: float, measure: Measure = "hull") -> float:
    """Scale w_b and w_s of all layers by one factor so that the bound is at most `cap`; gives the bound after that.

    Edges are linear in (w_b, w_s), so the bound of L layers scales with the factor to the power L. An equal factor
    is the smallest change of the logarithms of the layers' scales that reaches the cap.
    """
    norms = _certified_norms(kan, measure)
    found = math.prod(norms)
    if not found > cap:
        return found
    factor = (cap * (1 - ROUNDING) / found) ** (1 / len(norms))
    for layer in layers_of(kan):
        layer.base_weight.mul_(factor)
        layer.spline_weight.mul_(factor)
    return certified_bound(kan, measure)


def _certified_norms(kan: KAN, measure: Measure) -> list[float]:
    norms = []
    for layer in layers_of(kan):
        readings = [EDGE_BOUNDS[measure](each).double() for each in (layer, copy.deepcopy(layer).double())]
        norms.append(float(torch.linalg.matrix_norm(torch.maximum(*readings), 2)))
    return norms
