"""Lipschitz-controlled training: bounds of a KAN that gradients can lower, and a cap that no step gets past.

Every bound follows from the weights alone, so it holds for all inputs. With E_l the matrix of edge bounds of layer l,
    |phi_ji(x) - phi_ji(x')| <= (E_l)_ji |x - x'|,     Lip(KAN) <= prod_l ||E_l||_2     in the Euclidean norm.
An edge has one of two bounds:
    lemma   |w_b| L_b + |w_s| (2 / h_min) ||c||_1                                                  (Lemma 3.1)
    hull    |w_b| L_b + |w_s| max_r |d_r|,     d_r = k (c_r - c_{r-1}) / (t_{r+k} - t_r)
The d_r are the coefficients of the spline's derivative, again a spline, and B-splines are positive with sum at most
one: its values lie between the least and the largest d_r. As |d_r| <= ||c||_1 / h_min, hull is below lemma always.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.nn.kan import KAN, SILU_LIPSCHITZ, KANLayer
from spectrakan.theory.parts import kan_layers

Measure = Literal["hull", "lemma"]
Strength = Annotated[float, Field(ge=0.0)]
ROUNDING = 1e-5
"""How far below the cap a projection goes, so that no other order of summing comes out above it."""


@settings
class LipschitzSettings:
    """How steep the token's KAN may become; with the defaults nothing is controlled."""

    cap: Annotated[float, Field(gt=0.0)] | None = None
    """Largest certified bound of the KAN; after every step its slopes are scaled down to it where they are above."""
    penalty: Strength = 0.0
    """Weight of log(1 + bound of the KAN) in the loss."""
    coefficient_penalty: Strength = 0.0
    """Weight in the loss of ||c||_1, as the mean over all edges."""
    spacing_penalty: Strength = 0.0
    """Weight in the loss of (mean knot spacing / least knot spacing - 1), as the mean over all inputs."""
    measure: Measure = "hull"
    """Bound of an edge that is capped and penalised: `hull` of its derivative's coefficients, or Lemma 3.1's."""

    @property
    def penalises(self) -> bool:
        """Whether anything is added to the loss."""
        return self.penalty > 0 or self.coefficient_penalty > 0 or self.spacing_penalty > 0

    @property
    def active(self) -> bool:
        """Whether anything is controlled at all."""
        return self.cap is not None or self.penalises


def edge_bounds(layer: KANLayer, measure: Measure = "hull") -> Float[Tensor, "out in"]:
    """A Lipschitz bound of every edge, with gradients to weights, coefficients and knots."""
    return _edge_bounds(layer, layer.knots(), measure)


def kan_bound(kan: KAN, measure: Measure = "hull") -> Float[Tensor, ""]:
    """The product bound of a whole KAN, with gradients.

    >>> kan = KAN([2, 3, 1])
    >>> bool(kan_bound(kan) < kan_bound(kan, "lemma"))
    True
    """
    norms = [torch.linalg.matrix_norm(edge_bounds(layer, measure), 2) for layer in kan_layers(kan)]
    return torch.stack(norms).prod()


def control_penalty(kan: KAN, choices: LipschitzSettings) -> Float[Tensor, ""]:
    """What control adds to the loss; the logarithm gives every bound, however large, a gradient of usable size."""
    layers = kan_layers(kan)
    total = layers[0].base_weight.new_zeros(())
    if choices.penalty > 0:
        total = total + choices.penalty * torch.log1p(kan_bound(kan, choices.measure))
    if choices.coefficient_penalty > 0:
        sizes = torch.cat([layer.coefficients.abs().sum(-1).flatten() for layer in layers])
        total = total + choices.coefficient_penalty * sizes.mean()
    if choices.spacing_penalty > 0:
        spacings = [layer.knots().diff(dim=1) for layer in layers]
        uneven = torch.cat([spacing.mean(1) / spacing.amin(1) - 1 for spacing in spacings])
        total = total + choices.spacing_penalty * uneven.mean()
    return total


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
    for layer in kan_layers(kan):
        layer.base_weight.mul_(factor)
        layer.spline_weight.mul_(factor)
    return certified_bound(kan, measure)


def _certified_norms(kan: KAN, measure: Measure) -> list[float]:
    norms = []
    for layer in kan_layers(kan):
        exact = {name: value.double() for name, value in layer.knots.state_dict().items()}
        readings = [layer.knots(), torch.func.functional_call(layer.knots, exact, ())]
        bounds = [_edge_bounds(layer, knots.double(), measure) for knots in readings]
        norms.append(float(torch.linalg.matrix_norm(torch.maximum(*bounds), 2)))
    return norms


def _edge_bounds(layer: KANLayer, knots: Tensor, measure: Measure) -> Tensor:
    base, spline, coefficients = (
        weight.to(knots.dtype) for weight in (layer.base_weight, layer.spline_weight, layer.coefficients)
    )
    if measure == "lemma":
        slope = 2 / knots.diff(dim=1).amin(1) * coefficients.abs().sum(-1)
    else:
        slope = _derivative_coefficients(layer, coefficients, knots).abs().amax(-1)
    return base.abs() * SILU_LIPSCHITZ + spline.abs() * slope


def _derivative_coefficients(layer: KANLayer, coefficients: Tensor, knots: Tensor) -> Tensor:
    """d_r of every edge, `(out, in, r)`: those inside the grid, or all of them where the spline runs out to zero."""
    order = layer.spline_order
    if layer.extension == "zero":
        coefficients = F.pad(coefficients, (1, 1))
        spans = knots[:, order:] - knots[:, :-order]
    else:
        spans = knots[:, order + 1 : -1] - knots[:, 1 : -order - 1]
    return order * coefficients.diff(dim=-1) / spans
