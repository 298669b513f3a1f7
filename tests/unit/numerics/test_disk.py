from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.numerics.finite_volume import disk_cover

EDGES = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64)


@given(x=st.floats(-0.4, 0.4), y=st.floats(-0.4, 0.4), radius=st.floats(1e-3, 0.5), cells=st.integers(1, 40))
def test_a_disk_inside_the_box_keeps_its_area(x: float, y: float, radius: float, cells: int):
    edges = torch.linspace(-1.0, 1.0, cells + 1, dtype=torch.float64)[None]
    cover = disk_cover(edges - x, edges - y, torch.tensor([radius], dtype=torch.float64))
    area = float(cover.sum()) * (2.0 / cells) ** 2
    assert area == pytest.approx(math.pi * radius**2, rel=1e-8, abs=1e-12)


def test_cells_agree_with_counted_points():
    x, y, radius, points = 0.13, -0.21, 0.47, 400
    cover = disk_cover((EDGES - x)[None], (EDGES - y)[None], torch.tensor([radius], dtype=torch.float64)).numpy()[0]
    place = (np.arange(11 * points) + 0.5) * 2 / (11 * points) - 1
    inside = (place[:, None] - x) ** 2 + (place[None, :] - y) ** 2 < radius**2
    counted = inside.reshape(11, points, 11, points).mean(axis=(1, 3))
    np.testing.assert_allclose(cover, counted, atol=2.0 / points)


def test_cells_within_are_full_and_cells_outside_are_empty():
    cover = disk_cover(EDGES[None], EDGES[None], torch.tensor([0.5], dtype=torch.float64))[0]
    corner = torch.maximum(EDGES[1:].abs(), EDGES[:-1].abs())
    far = (corner[:, None] ** 2 + corner[None, :] ** 2).sqrt()
    near = ((EDGES[1:] + EDGES[:-1]) / 2).abs() - 1 / 11
    close = (near.clamp_min(0)[:, None] ** 2 + near.clamp_min(0)[None, :] ** 2).sqrt()
    assert (far < 0.5).any()
    assert float((cover[far < 0.5] - 1).abs().max()) < 1e-12
    assert float(cover[close > 0.5 + 1e-9].abs().max()) < 1e-12
