"""Bounds that control training with: above every slope, below the lemma, lowered by gradients, never past a cap."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature
from spectrakan.models import build_model
from spectrakan.nn.kan import KAN, KANLayer
from spectrakan.theory.control import (
    LipschitzSettings,
    cap_slopes,
    certified_bound,
    control_penalty,
    edge_bounds,
    kan_bound,
)
from spectrakan.theory.parts import token_kan


def random_kan(widths, generator, *, order=3, extension="linear", scale=1.0) -> KAN:
    """Weights, coefficients and knots all far from where they start, in float64."""
    kan = KAN(widths, spline_order=order, num_intervals=5, extension=extension).double()
    with torch.no_grad():
        for parameter in kan.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return kan


def steepest(layer: KANLayer) -> torch.Tensor:
    """The largest slope of every edge found by autograd on a fine mesh well beyond the knots."""
    knots = layer.knots().detach()
    span = torch.linspace(-0.3, 1.3, 4001, dtype=knots.dtype)
    x = (knots[:, :1] + (knots[:, -1:] - knots[:, :1]) * span).requires_grad_()
    weights = layer.spline_weight[..., None] * layer.coefficients
    curves = layer.base_weight[..., None] * torch.nn.functional.silu(x) + torch.einsum(
        "oir,irn->oin", weights, layer.basis(x)
    )
    slopes = [torch.autograd.grad(curve.sum(), x, retain_graph=True)[0].abs().amax(1) for curve in curves]
    return torch.stack(slopes)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("extension", ["linear", "zero"])
def test_no_slope_is_above_the_hull_and_no_hull_above_the_lemma(order, extension, generator):
    layer = random_kan([4, 3], generator, order=order, extension=extension).layers[0]
    hull, lemma = edge_bounds(layer), edge_bounds(layer, "lemma")
    assert torch.all(steepest(layer) <= hull * (1 + 1e-12))
    assert torch.all(hull < lemma)
    assert torch.allclose(lemma, layer.lipschitz_bounds())


def test_hull_is_exact_for_a_linear_spline(generator):
    layer = random_kan([3, 2], generator, order=1).layers[0]
    with torch.no_grad():
        layer.base_weight.zero_()
    # On a fine mesh every piece of a broken line is met, so the largest slope found is the Lipschitz constant.
    assert torch.allclose(steepest(layer), edge_bounds(layer), rtol=1e-9)


def test_the_bound_of_a_kan_holds_for_pairs_and_is_the_product_for_single_edges(generator):
    kan = random_kan([5, 7, 4], generator)
    pairs = 3 * torch.randn(2, 10_000, 5, dtype=torch.float64, generator=generator)
    pairs[1, ::2] = pairs[0, ::2] + 1e-4 * pairs[1, ::2]
    with torch.no_grad():
        change = (kan(pairs[0]) - kan(pairs[1])).norm(dim=1) / (pairs[0] - pairs[1]).norm(dim=1)
        assert change.max() <= kan_bound(kan)
        single = random_kan([1, 1, 1], generator)
        expected = math.prod(float(edge_bounds(layer)) for layer in single.layers)
        assert math.isclose(float(kan_bound(single)), expected, rel_tol=1e-12)


@pytest.mark.parametrize("measure", ["hull", "lemma"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_capping_lands_on_the_cap_in_every_precision(measure, dtype, generator):
    kan = random_kan([5, 7, 6, 4], generator).to(dtype)
    after = cap_slopes(kan, 0.7, measure)
    assert 0.7 * (1 - 1e-4) < after <= 0.7
    assert certified_bound(kan, measure) <= 0.7
    with torch.no_grad():
        assert kan_bound(kan, measure) <= 0.7
        assert kan_bound(copy.deepcopy(kan).double(), measure) <= 0.7


def test_what_is_below_the_cap_is_left_alone_to_the_bit(generator):
    kan = random_kan([5, 7, 4], generator)
    before = copy.deepcopy(kan.state_dict())
    found = cap_slopes(kan, 1e9)
    assert found == certified_bound(kan)
    assert all(torch.equal(before[name], tensor) for name, tensor in kan.state_dict().items())


@given(factor=st.floats(0.01, 0.9), seed=st.integers(0, 50))
def test_capping_scales_every_layer_by_the_same_factor(factor, seed):
    kan = random_kan([3, 4, 2], torch.Generator().manual_seed(seed))
    plain = copy.deepcopy(kan)
    cap_slopes(kan, factor * certified_bound(kan))
    points = torch.linspace(-3, 3, 50, dtype=torch.float64)
    for before, after in zip(plain.layers, kan.layers, strict=True):
        here = points.expand(before.in_features, -1)
        assert torch.allclose(after.edge_curves(here), factor**0.5 * before.edge_curves(here), rtol=1e-4, atol=1e-12)


def test_penalties_are_their_formulas(generator):
    kan = random_kan([2, 3, 2], generator)
    coefficients = sum(
        layer.coefficients[o, i].abs().sum() for layer in kan.layers for o, i in pairs_of(layer)
    ) / sum(len(pairs_of(layer)) for layer in kan.layers)
    rows = [row for layer in kan.layers for row in layer.knots()]
    uneven = sum((row[-1] - row[0]) / (len(row) - 1) / row.diff().min() - 1 for row in rows) / len(rows)
    bound = torch.log(1 + kan_bound(kan, "lemma"))
    choices = LipschitzSettings(penalty=0.5, coefficient_penalty=2.0, spacing_penalty=3.0, measure="lemma")
    assert torch.allclose(control_penalty(kan, choices), 0.5 * bound + 2 * coefficients + 3 * uneven)
    assert float(control_penalty(kan, LipschitzSettings(cap=3.0))) == 0.0


def pairs_of(layer):
    return [(o, i) for o in range(layer.out_features) for i in range(layer.in_features)]


@pytest.mark.parametrize(
    ("choices", "what"),
    [
        (LipschitzSettings(penalty=1.0), lambda kan: kan_bound(kan)),
        (LipschitzSettings(penalty=1.0, measure="lemma"), lambda kan: kan_bound(kan, "lemma")),
        (LipschitzSettings(coefficient_penalty=1.0), lambda kan: kan_bound(kan, "lemma")),
        (LipschitzSettings(spacing_penalty=1.0), lambda kan: -kan.layers[0].knots().diff(dim=1).min()),
    ],
    ids=["bound", "lemma", "coefficients", "spacing"],
)
def test_following_a_penalty_s_gradient_lowers_what_it_is_on(choices, what, generator):
    kan = random_kan([3, 4, 2], generator)
    with torch.no_grad():
        before = float(what(kan))
    optimizer = torch.optim.SGD(kan.parameters(), lr=0.02)
    for _ in range(20):
        optimizer.zero_grad()
        control_penalty(kan, choices).backward()
        torch.nn.utils.clip_grad_norm_(kan.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        assert float(what(kan)) < before


@pytest.mark.parametrize("choices", [{"token": "mlp"}, {"token": "raw"}, {"token": "none"}])
def test_a_model_without_a_kan_token_is_refused(choices):
    facts = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    with pytest.raises(ConfigError, match="KAN token"):
        token_kan(build_model("spectrakan", facts, **choices))
    with pytest.raises(ConfigError, match="got 'fno'"):
        token_kan(build_model("fno", facts))
