"""Gaussian weights, against plain loops; fixed positions, against their formula."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.models.cvit import gaussian_weights, sincos_positions


@pytest.mark.parametrize("sharpness", [1.0, 50.0, 1e4])
def test_weights_are_the_normalised_bumps(sharpness):
    places, centres = torch.linspace(0, 1, 9).double(), (torch.arange(6).double() + 0.5) / 6
    weights = gaussian_weights(places, centres, sharpness)
    for i, x in enumerate(places.tolist()):
        bumps = [math.exp(-sharpness * (x - c) ** 2) for c in centres.tolist()]
        if sum(bumps) > 1e-200:
            assert weights[i].tolist() == pytest.approx([bump / sum(bumps) for bump in bumps], abs=1e-12)


def test_no_place_divides_zero_by_zero_however_sharp_the_bumps_and_coarse_the_lattice():
    """The published sharpness on 12 points: a plain ratio is 0/0 in float32 half-way between two of them."""
    places, centres = torch.linspace(0, 1, 25), (torch.arange(12) + 0.5) / 12
    plain = (-1e5 * (places[:, None] - centres).square()).exp()
    assert bool((plain.sum(1) == 0).any()), "the plain ratio must fail for this test to show anything"
    weights = gaussian_weights(places, centres, 1e5)
    assert bool(torch.isfinite(weights).all())
    assert torch.allclose(weights.sum(1), torch.ones(25))


@pytest.mark.parametrize("width", [1, 2, 6, 7])
def test_positions_are_sines_then_cosines_of_falling_frequencies(width):
    table = sincos_positions(torch.arange(5).double(), width)
    half = width // 2
    assert table.shape == (5, width)
    for place in range(5):
        for k in range(half):
            frequency = 10000 ** (-k / half)
            assert float(table[place, k]) == pytest.approx(math.sin(place * frequency), abs=1e-12)
            assert float(table[place, half + k]) == pytest.approx(math.cos(place * frequency), abs=1e-12)
