"""Patches cut where they should be, against indexing by hand."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from spectrakan.models.cvit import Patches, cut, patch_positions


@pytest.mark.parametrize("counts", [(3,), (2, 3), (2, 1, 2)])
def test_each_patch_holds_its_cells_in_order(counts):
    patch, dims = 2, len(counts)
    frames = torch.randn(2, 3, *[patch * count for count in counts], 2)
    tokens = cut(frames, patch)
    for number, place in enumerate(product(*[range(count) for count in counts])):
        window = tuple(slice(patch * p, patch * (p + 1)) for p in place)
        assert torch.equal(tokens[:, :, number], frames[(slice(None), slice(None), *window)].flatten(2)), dims


def test_no_two_patches_have_the_same_place():
    places = patch_positions((3, 4), 16)
    distances = torch.cdist(places, places) + 10 * torch.eye(12)
    assert float(distances.min()) > 0.1


def test_a_token_is_a_linear_map_of_its_patch_plus_its_place():
    torch.manual_seed(0)
    layer = Patches((2, 2), 2, 1, 8)
    frames = torch.randn(1, 1, 4, 4, 1)
    corner = frames[0, 0, 2:, :2].flatten()
    assert torch.allclose(layer(frames)[0, 0, 2], layer.embed(corner) + layer.positions[2], atol=1e-6)
