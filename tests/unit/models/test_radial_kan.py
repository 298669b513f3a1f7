"""Radial KANs against plain loops in float64."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.models.deepokan import RadialKAN, RadialKANLayer


def by_loops(layer: RadialKANLayer, x: list[float]) -> list[float]:
    centres = layer.centres.tolist()
    bump = float(layer.bump_width)
    weight = layer.weight.detach().reshape(-1, len(x), len(centres))
    return [
        sum(
            float(row[i, r]) * math.exp(-(((x[i] - c) / bump) ** 2))
            for i in range(len(x))
            for r, c in enumerate(centres)
        )
        for row in weight
    ]


@torch.no_grad()
def test_a_network_is_the_sums_of_its_equation(generator):
    torch.manual_seed(0)
    network = RadialKAN([3, 5, 4, 2], 6, span=(-2.0, 3.0)).double()
    assert float(network.layers[0].bump_width) == pytest.approx(1.0)
    assert float(network.layers[1].bump_width) == pytest.approx(0.4)
    x = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    for ours, sample in zip(network(x), x, strict=True):
        features = sample.tolist()
        for number, layer in enumerate(network.layers):
            features = by_loops(layer, [math.tanh(f) for f in features] if number else features)
        assert ours.tolist() == pytest.approx(features, abs=1e-12)


@torch.no_grad()
def test_it_fits_a_function_of_one_variable_but_for_a_ripple():
    """Bumps as wide as their spacing sum to a constant up to 2 exp(-pi^2), so sin(3x) comes out to three digits."""
    layer = RadialKANLayer(1, 1, 25).double()
    layer.spread(-2.0, 2.0)
    x = torch.linspace(-1, 1, 200, dtype=torch.float64)[:, None]
    basis = torch.stack([(-(((x[:, 0] - c) / layer.bump_width) ** 2)).exp() for c in layer.centres], dim=1)
    layer.weight.copy_(torch.linalg.lstsq(basis, torch.sin(3 * x), driver="gelsd").solution.T)
    assert float((layer(x) - torch.sin(3 * x)).abs().max()) < 1e-3


@torch.no_grad()
def test_the_span_follows_the_samples_and_outputs_start_at_unit_scale():
    torch.manual_seed(0)
    network = RadialKAN([40, 30, 8], 12)
    samples = 2 + 5 * torch.rand(500, 40)
    network.fit_span(samples)
    centres = network.layers[0].centres
    assert float(centres[0]) == pytest.approx(float(samples.min()))
    assert float(centres[-1]) == pytest.approx(float(samples.max()))
    assert 0.6 < float(network.layers[0](samples).std()) < 1.6
    network.fit_span(torch.full((3, 40), 7.0))  # a constant has no span: nothing moves
    assert float(centres[-1]) == pytest.approx(float(samples.max()))
