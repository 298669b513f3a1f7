"""Control of a KAN's slopes: penalties are their formulas and lower what they are on, and a cap is never passed."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature
from spectrakan.models import build_model
from spectrakan.nn.kan import KAN
from spectrakan.theory.control import (
    LipschitzSettings,
    cap_slopes,
    certified_bound,
    control_penalty,
)
from spectrakan.theory.kan_bounds import product_bound
from spectrakan.theory.parts import token_kan


def random_kan(widths, generator, *, order=3, extension="linear", scale=1.0) -> KAN:
    """Weights, coefficients and knots all far from where they start, in float64."""
    kan = KAN(widths, spline_order=order, num_intervals=5, extension=extension).double()
    with torch.no_grad():
        for parameter in kan.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return kan


@pytest.mark.parametrize("measure", ["hull", "lemma"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_capping_lands_on_the_cap_in_every_precision(measure, dtype, generator):
    kan = random_kan([5, 7, 6, 4], generator).to(dtype)
    after = cap_slopes(kan, 0.7, measure)
    assert 0.7 * (1 - 1e-4) < after <= 0.7
    assert certified_bound(kan, measure) <= 0.7
    with torch.no_grad():
        assert product_bound(kan, measure) <= 0.7
        assert product_bound(copy.deepcopy(kan).double(), measure) <= 0.7


def test_what_is_below_the_cap_is_left_alone_to_the_bit(generator):
    kan = random_kan([5, 7, 4], generator)
    before = copy.deepcopy(kan.state_dict())
    found = cap_slopes(kan, 1e9)
    assert found == certified_bound(kan)
    assert all(torch.equal(before[name], tensor) for name, tensor in kan.state_dict().items())


@settings(deadline=None, max_examples=20)
@given(factor=st.floats(0.01, 0.9), seed=st.integers(0, 50))
def test_capping_scales_every_layer_by_the_same_factor(factor, seed):
    kan = random_kan([3, 4, 2], torch.Generator().manual_seed(seed))
    plain = copy.deepcopy(kan)
    cap_slopes(kan, factor * certified_bound(kan))
    points = torch.linspace(-3, 3, 50, dtype=torch.float64)
    for before, after in zip(plain.layers, kan.layers, strict=True):
        here = points.expand(before.in_features, -1)
        assert torch.allclose(after.edge_curves(here), factor**0.5 * before.edge_curves(here), rtol=1e-4, atol=1e-12)


def test_the_penalty_is_its_formula(generator):
    kan = random_kan([2, 3, 2], generator)
    bound = torch.log(1 + product_bound(kan, "lemma"))
    assert torch.allclose(control_penalty(kan, LipschitzSettings(penalty=0.5, measure="lemma")), 0.5 * bound)
    assert control_penalty(kan, LipschitzSettings(cap=3.0)).item() == 0.0


@pytest.mark.parametrize(
    ("config", "what"),
    [
        (LipschitzSettings(penalty=1.0), lambda kan: product_bound(kan, "hull")),
        (LipschitzSettings(penalty=1.0, measure="lemma"), lambda kan: product_bound(kan, "lemma")),
    ],
    ids=["bound", "lemma"],
)
def test_following_a_penalty_s_gradient_lowers_what_it_is_on(config, what, generator):
    kan = random_kan([3, 4, 2], generator)
    with torch.no_grad():
        before = float(what(kan))
    optimizer = torch.optim.SGD(kan.parameters(), lr=0.02)
    for _ in range(20):
        optimizer.zero_grad()
        control_penalty(kan, config).backward()
        torch.nn.utils.clip_grad_norm_(kan.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        assert float(what(kan)) < before


@pytest.mark.parametrize("config", [{"token": "mlp"}, {"token": "raw"}, {"token": "none"}])
def test_a_model_without_a_kan_token_is_refused(config):
    signature = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    with pytest.raises(ConfigError, match="KAN token"):
        token_kan(build_model("spectrakan", signature, **config))
    with pytest.raises(ConfigError, match="got 'fno'"):
        token_kan(build_model("fno", signature))
