"""Latents read by Gaussian weights: axis by axis is the same as over all pairs of places and lattice points."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.models.cvit import LatentGrid
from spectrakan.nn.axis import uniform_axis
from spectrakan.nn.embedding import cell_coordinates


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("sharpness", [3.0, 60.0])
@torch.no_grad()
def test_it_is_the_weighted_mean_over_the_whole_lattice(dims, sharpness):
    torch.manual_seed(0)
    grid = LatentGrid((4, 3, 2)[:dims], 5, 6, sharpness).double()
    axes = [uniform_axis(cells, False) for cells in (3, 5, 2)[:dims]]
    places = cell_coordinates(axes, grid.latents)
    lattice = cell_coordinates([uniform_axis(n, False) for n in grid.latents.shape[:-1]], grid.latents)
    latents = grid.latents.flatten(0, -2)
    for x, ours in zip(places, grid.interpolate(axes).flatten(0, -2), strict=True):
        weights = [math.exp(-sharpness * float((x - c).square().sum())) for c in lattice]
        expected = sum(w * z for w, z in zip(weights, latents, strict=True)) / sum(weights)
        assert torch.allclose(ours, expected, atol=1e-10)


def test_sharp_weights_on_a_coarse_lattice_stay_finite_in_single_precision():
    torch.manual_seed(0)
    grid = LatentGrid((16, 16), 4, 8, 1e5)
    embedded = grid([uniform_axis(33, False)] * 2)
    embedded.square().sum().backward()
    assert bool(torch.isfinite(embedded).all())
    assert bool(torch.isfinite(grid.latents.grad).all())


def test_latents_start_smooth_and_at_unit_variance():
    torch.manual_seed(0)
    latents = LatentGrid((32, 32), 200, 8, 1e3).latents.detach()
    assert float(latents.square().mean()) == pytest.approx(1.0, abs=0.1)
    step = float((latents[1:] - latents[:-1]).square().mean().sqrt())
    far = float((latents[16:] - latents[:16]).square().mean().sqrt())
    assert step < 0.2 < 0.8 < far, "neighbours alike, halves of the domain not"
