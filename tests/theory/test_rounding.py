"""Certificates in floating point: tiny balls, hostile weights, single precision."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest
import torch

import spectrakan as sk
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.kan import KANLayer
from spectrakan.theory import reach
from spectrakan.theory.attack import AttackSettings, attack, euclid
from spectrakan.theory.kan_bounds import exact_bounds
from spectrakan.theory.norms import spectral_norm, sup_to_two, top_eigenvalue
from spectrakan.theory.slopes import edge_pieces, enclose, slope_range

QUICK = AttackSettings(starts=4, steps=5, pairs=16)
VARIANTS = [
    {},
    {"use_gml": False},
    {"pool": "center+mean+std", "activation": "relu"},
    {"token": "mlp"},
    {"pool": "auto", "conditioning": "auto"},
]


def small_model(seed: int, **config) -> SpectraKAN:
    signature = sk.OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1, boundary=("wall",))
    small = {
        "width": 4,
        "num_modes": 3,
        "num_layers": 2,
        "token_width": 4,
        "pool": "center",
        "conditioning": "readout",
    }
    small |= config
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = sk.build_model("spectrakan", signature, **small, attention_width=4, readout_width=8)
        if model.conditioning is not None and model.conditioning.film is not None:
            torch.nn.init.normal_(model.conditioning.film.weight, std=0.2)
        return model


@pytest.mark.parametrize("exponent", range(2, 13))
def test_no_radius_is_so_small_that_rounding_refutes_a_bound(exponent):
    model = small_model(exponent, **VARIANTS[exponent % len(VARIANTS)])
    inputs = 3 * torch.randn(1, 2, 8, 1, generator=torch.Generator().manual_seed(exponent))
    found = sk.certify(model, inputs, radius=10.0**-exponent, config=QUICK)
    assert found.beaten == ()
    # Slopes are found whatever the radius, so that a bound that is too small is still refuted.
    for name in ("token", "modulation", "prediction"):
        assert found.entries[name].ratio < 2
        assert replace(found.entries[name], value=0.5 * found.entries[name].value).beaten


@pytest.mark.parametrize("radius", [1e-3, 1e-9, 1e-12])
def test_a_change_is_understated_by_no_more_than_the_rounding_that_it_may_contain(radius):
    """F(u) = 1e6 + 3 u has an error of about 1e-10, which at r = 1e-12 exceeds the change itself."""
    found = attack(lambda u: 1e6 + 3 * u, torch.ones(1, 2).double(), radius, euclid, AttackSettings())
    exact = 3 * math.sqrt(2)
    assert found.change <= exact
    assert found.slope == pytest.approx(exact, rel=1e-9)
    if radius == 1e-3:
        assert found.change == pytest.approx(exact, rel=1e-5)


def hostile(seed: int, decades: float) -> SpectraKAN:
    """Every parameter times a power of ten of its own; in one model of three an entry is not finite."""
    model, source = small_model(seed, **VARIANTS[seed % len(VARIANTS)]), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10.0 ** (decades * (2 * float(torch.rand((), generator=source)) - 1)))
        if decades > 3 and seed % 3 == 0:
            chosen = list(model.parameters())[seed % len(list(model.parameters()))]
            chosen.view(-1)[0] = (math.inf, math.nan, -math.inf)[seed % 9 // 3]
    return model


@pytest.mark.parametrize("decades", [3, 20, 36])
@pytest.mark.parametrize("seed", range(6))
def test_hostile_weights_are_answered_by_no_finite_bound(seed, decades, monkeypatch):
    # Entries of a node are taken together in large models; here in small ones too.
    monkeypatch.setattr(reach, "LEAST_BALL", 1 if seed // 2 % 2 else 1024)
    model, inputs = hostile(seed, decades), torch.randn(1, 2, 8, 1, generator=torch.Generator().manual_seed(seed))
    found = sk.certify(model, inputs, radius=(0.1, 1e-8)[seed % 2], config=QUICK)
    values = {name: entry.value for name, entry in found.entries.items()}
    assert not any(math.isnan(value) for value in values.values())
    unbounded = {name for name, value in values.items() if math.isinf(value)} - {"modulation_paper"}
    if decades == 3:
        assert found.beaten == ()
    if unbounded:
        assert all(name in found.notes[-1] for name in unbounded)
        assert "no finite bound" in found.notes[-1]
        assert json.loads(found.to_json())["entries"][unbounded.pop()]["value"] is None


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 10))
def test_three_hundred_hostile_models_never_beat_a_certified_number(first, monkeypatch):
    monkeypatch.setattr(reach, "LEAST_BALL", 1 if first // 10 % 2 else 1024)
    for seed in range(first, first + 10):
        model, source = hostile(seed, (0.5, 1.0, 3.0)[seed % 3]), torch.Generator().manual_seed(seed)
        radius = 10.0 ** -(1 + seed % 8)
        found = sk.certify(model, torch.randn(1, 2, 8, 1, generator=source), radius=radius, config=QUICK)
        assert found.beaten == ()
        assert not any(math.isnan(entry.value) for entry in found.entries.values())


def test_weights_beyond_float64_have_no_finite_bound():
    model = small_model(0)
    with torch.no_grad():
        for part in (model.gml.query.weight, model.gml.key):
            part.fill_(1e38)
        model.global_token.network.layers[0].base_weight.fill_(math.inf)
    found = sk.certify(model, torch.ones(1, 2, 8, 1), config=QUICK)
    assert math.isinf(found.modulation)
    assert math.isinf(found.kan)
    assert "modulation" in found.notes[-1]


def test_norms_of_what_is_not_finite_are_infinite():
    for matrix in (torch.full((3, 3), torch.nan), torch.full((3, 3), torch.inf), torch.full((200, 200), torch.nan)):
        for norm in (top_eigenvalue, sup_to_two, spectral_norm):
            assert math.isinf(norm(matrix.double()))
    assert float(sup_to_two(torch.full((2, 2), 1e200, dtype=torch.float64))) == pytest.approx(2e200 * math.sqrt(2))


def test_undefined_intervals_leave_slopes_and_values_unknown():
    layer = KANLayer(1, 1).double()
    unknown = torch.full((1, 1), torch.nan).double()
    for order in (0, 1):
        least, most = enclose(edge_pieces(layer), unknown, unknown, order)
        assert math.isinf(least)
        assert math.isinf(most)
        assert least < most
    # Over all numbers the slope is that of the whole edge, and values are unbounded.
    least, most = enclose(
        edge_pieces(layer), -torch.inf * torch.ones(1, 1).double(), torch.inf + unknown.nan_to_num(), 1
    )
    assert float(torch.maximum(-least, most)) == pytest.approx(float(exact_bounds(layer)), rel=0.05)
    low, high = slope_range("relu", torch.tensor(torch.nan), torch.tensor(torch.nan))
    assert (float(low), float(high)) == (0.0, 1.0)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_bounds_of_two_hundred_float32_layers_cover_both_readings_of_their_knots(order):
    """Of a spline of order 1 the constant is a difference quotient, here in rational numbers; others are enclosed."""
    for seed in range(200 if order == 1 else 20):
        source = torch.Generator().manual_seed(seed)
        layer = KANLayer(3, 4, spline_order=order)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=source))
            if order == 1:
                layer.base_weight.zero_()
        exact, found = copy.deepcopy(layer).double(), exact_bounds(layer)
        if order > 1:
            assert bool((found >= exact_bounds(exact, cells=1 << 15) * (1 - 1e-9)).all())
            continue
        for knots in (exact.knots().tolist(), layer.knots().tolist()):
            for j, i in torch.cartesian_prod(torch.arange(4), torch.arange(3)).tolist():
                weight = abs(Fraction(layer.spline_weight[j, i].item()))
                values = [Fraction(each) for each in layer.coefficients[j, i].tolist()]
                grid = [Fraction(each) for each in knots[i][1:-1]]
                steps = zip(values, values[1:], grid, grid[1:], strict=False)
                slope = weight * max(abs((b - a) / (t - s)) for a, b, s, t in steps)
                assert slope <= Fraction(found[j, i].item()) <= slope * Fraction("1.0001")
