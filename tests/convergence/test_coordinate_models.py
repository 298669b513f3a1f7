"""Baselines that take any grid are one operator at every resolution."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

import spectrakan as sk

CHOICES = {
    "transolver": {"width": 16, "num_layers": 2, "num_heads": 2, "num_slices": 4},
    "cvit": {"width": 16, "num_layers": 1, "num_heads": 2, "decoder_width": 16, "decoder_heads": 2, "patch": 4,
             "cells": 16, "latent_cells": 8, "latent_width": 8, "sharpness": 100.0},
    "deepokan": {"sensors": 8, "width": 8, "num_features": 8, "num_centres": 5},
    "deeponet": {"sensors": 8, "width": 16, "num_features": 8},
}  # fmt: skip


def smooth_input(cells: tuple[int, ...]) -> torch.Tensor:
    """Two frames of two smooth fields at cell centres, `(1, 2, *cells, 2)`."""
    axes = [(torch.arange(n, dtype=torch.float64) + 0.5) / n for n in cells]
    total = sum(torch.meshgrid(*[(number + 1) * x for number, x in enumerate(axes)], indexing="ij"))
    frames = [torch.stack([torch.sin(3 * total + t + c) for c in range(2)], dim=-1) for t in range(2)]
    return torch.stack(frames)[None]


def onto(output: torch.Tensor, cells: int, dims: int) -> torch.Tensor:
    """Means over larger cells, which divide the output's."""
    for axis in range(1, dims + 1):
        output = output.unflatten(axis, (cells, -1)).mean(axis + 1)
    return output


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("name", sorted(CHOICES))
@torch.no_grad()
def test_outputs_converge_with_second_order(name, dims):
    torch.manual_seed(3)
    facts = sk.OperatorSignature(space_dims=dims, history=2, in_channels=2, out_channels=2)
    model = sk.build_model(name, facts, **CHOICES[name]).double()
    for parameter in model.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))  # away from starts that are nearly zero
    sizes = (32, 64, 128, 256)
    outputs = [onto(model(smooth_input((n,) * dims)), 32, dims) for n in sizes]
    changes = [float((fine - coarse).abs().max()) for coarse, fine in pairwise(outputs)]
    slopes = [math.log2(earlier / later) for earlier, later in pairwise(changes)]
    assert slopes[0] > 1.7, (changes, slopes)
    assert 1.8 < slopes[1] < 2.2, (changes, slopes)


@pytest.mark.parametrize("name", sorted(CHOICES))
@torch.no_grad()
def test_neighbouring_sizes_agree_to_the_cell_width(name):
    torch.manual_seed(3)
    facts = sk.OperatorSignature(space_dims=1, history=2, in_channels=2, out_channels=2)
    model = sk.build_model(name, facts, **CHOICES[name]).double()
    gaps = []
    for size in (32, 64, 128):
        means = torch.stack([model(smooth_input((n,))).mean((0, 1)) for n in (size - 1, size, size + 1)])
        gaps.append(float((means.amax(0) - means.amin(0)).max()))
    assert gaps[0] < 0.5 / 32
    assert all(later < 0.75 * earlier for earlier, later in pairwise(gaps)), gaps
