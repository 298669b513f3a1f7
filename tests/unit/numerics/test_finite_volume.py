"""Ghost cells mirror what they should; limited slopes obey the definition and never overshoot."""

from __future__ import annotations

import math

import hypothesis.extra.numpy as arrays
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrakan.numerics.finite_volume import (
    mc_slope,
    pad_ghost_cells,
    refine_cells,
)
from spectrakan.numerics.resample import block_mean

numbers = st.floats(-1e3, 1e3)
fields = arrays.arrays("float64", st.tuples(st.just(2), st.integers(3, 12)), elements=numbers)


def mc_by_definition(a: float, b: float) -> float:
    if a * b <= 0:
        return 0.0
    return math.copysign(min(2 * abs(a), abs(a + b) / 2, 2 * abs(b)), a)


@pytest.mark.parametrize(
    ("boundary", "odd", "expected"),
    [
        ("periodic", False, [2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0]),
        ("outflow", False, [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0]),
        ("wall", False, [2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 2.0]),
        ("wall", True, [-2.0, -1.0, 1.0, 2.0, 3.0, -3.0, -2.0]),
    ],
)
def test_two_ghost_cells_at_each_end_along_any_axis(boundary, odd, expected):
    line = torch.tensor([1.0, 2.0, 3.0])
    assert pad_ghost_cells(line, 0, boundary, width=2, odd=odd).tolist() == expected
    column = pad_ghost_cells(line[None, :, None].expand(2, 3, 4), -2, boundary, width=2, odd=odd)
    assert torch.equal(column, torch.tensor(expected)[None, :, None].expand(2, 7, 4))


@settings(deadline=None)
@given(fields)
def test_slopes_follow_their_definition_and_bound_the_face_values(field):
    padded = torch.from_numpy(field)
    slopes = mc_slope(padded, 1)
    for row in range(2):
        for cell in range(1, padded.shape[1] - 1):
            a = float(padded[row, cell] - padded[row, cell - 1])
            b = float(padded[row, cell + 1] - padded[row, cell])
            assert float(slopes[row, cell - 1]) == pytest.approx(mc_by_definition(a, b), abs=1e-12)
    neighbours = torch.stack([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]])
    for face in (padded[:, 1:-1] - slopes / 2, padded[:, 1:-1] + slopes / 2):
        assert bool((face >= neighbours.amin(0) - 1e-9).all())
        assert bool((face <= neighbours.amax(0) + 1e-9).all())


def test_the_mc_slope_of_a_smooth_monotone_field_is_second_order():
    errors = []
    for cells in (32, 64):
        width = 1.0 / cells
        x = (torch.arange(-1, cells + 1, dtype=torch.float64) + 0.5) * width
        slope = mc_slope(x.exp(), 0) / width
        errors.append(float((slope - x[1:-1].exp()).abs().max()))
    assert math.log2(errors[0] / errors[1]) > 1.9


@settings(deadline=None)
@given(fields, st.integers(1, 4))
def test_refining_and_averaging_give_back_the_cells(field, factor):
    cells = torch.from_numpy(field)
    fine = refine_cells(pad_ghost_cells(cells, 1, "periodic"), 1, factor)
    torch.testing.assert_close(block_mean(fine, 1, factor), cells, rtol=0, atol=1e-9)
    assert float(fine.max()) <= float(cells.max()) + 1e-9
    assert float(fine.min()) >= float(cells.min()) - 1e-9
