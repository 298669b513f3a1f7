"""From cells to larger cells and back: exact for what should be exact, and the fast forms the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.fields import Grid
from spectrakan.nn.axis import axes_of, uniform_axis
from spectrakan.nn.multiscale import _lines, _means, transferred
from spectrakan.numerics.fourier import frequencies, resolved_modes, signed_matrices, transform_matrices
from spectrakan.numerics.quadrature import cell_volumes, weighted_mean
from spectrakan.numerics.resample import (
    block_mean,
    line_matrix,
    overlap_matrix,
)


@given(cells=st.integers(4, 40), stride=st.integers(2, 5))
def test_means_over_larger_cells_keep_the_integral_and_constants(cells, stride):
    fine, coarse = uniform_axis(cells, False), uniform_axis(cells, False).coarse(stride)
    matrix = overlap_matrix(fine.edges, coarse.edges)
    assert coarse.cells == -(-cells // stride)
    assert torch.allclose(matrix.sum(1), torch.ones(coarse.cells, dtype=torch.float64))
    assert torch.allclose(coarse.weights @ matrix, fine.weights), "integral of the means = integral of the field"


@given(cells=st.integers(4, 40), stride=st.integers(2, 5), periodic=st.booleans())
def test_lines_between_centres_keep_constants_and_straight_lines(cells, stride, periodic):
    fine = uniform_axis(cells, periodic)
    coarse = fine.coarse(stride)
    matrix = line_matrix(coarse.centres, fine.centres, periodic=periodic)
    assert torch.allclose(matrix.sum(1), torch.ones(cells, dtype=torch.float64))
    inside = (fine.centres >= coarse.centres[0]) & (fine.centres <= coarse.centres[-1])
    assert torch.allclose((matrix @ coarse.centres)[inside], fine.centres[inside], atol=1e-12)


@pytest.mark.parametrize("stride", [2, 3, 4])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_means_over_blocks_are_the_matrix(stride, axis, generator):
    values = torch.randn(12, 12, 12, dtype=torch.float64, generator=generator)
    fine = uniform_axis(12, True)
    down = overlap_matrix(fine.edges, fine.coarse(stride).edges)
    plain = torch.tensordot(down, values, dims=([1], [axis % 3])).movedim(0, axis % 3)
    assert torch.allclose(block_mean(values, axis, stride), plain)


@pytest.mark.parametrize("cells", [30, 31])
def test_down_and_up_again_is_close_for_smooth_fields_on_any_cells(cells):
    """Second order on even and odd sizes and on a stretched grid, with gradients flowing through both."""
    errors = []
    for n in (cells, 2 * cells):
        edges = torch.linspace(0, 1, n + 1, dtype=torch.float64) ** 1.3
        for grid in (None, Grid.from_edges([edges, edges])):
            axes = axes_of((n, n), grid, [False, False])
            coarse = [axis.coarse(2) for axis in axes]
            x, y = torch.meshgrid(axes[0].centres, axes[1].centres, indexing="ij")
            field = torch.cos(np.pi * x) * torch.cos(2 * np.pi * y)  # zero slope on the edge
            field = field.expand(1, 1, n, n).clone().requires_grad_()
            back = transferred(_lines, transferred(_means, field, axes, coarse), coarse, axes)
            errors.append((back - field).abs().max().item())
            back.sum().backward()
            assert torch.isfinite(field.grad).all()
    assert errors[2] < 0.35 * errors[0]
    assert errors[3] < 0.6 * errors[1]


def test_weighted_mean_is_the_sum_over_volumes(generator):
    weights = [torch.rand(n, dtype=torch.float64, generator=generator) for n in (3, 4, 5)]
    weights = [weight / weight.sum() for weight in weights]
    values = torch.randn(2, 3, 4, 5, dtype=torch.float64, generator=generator)
    expected = (values * cell_volumes(weights)).sum((1, 2, 3))
    assert torch.allclose(weighted_mean(values, weights), expected)


@pytest.mark.parametrize("basis", ["fourier", "cosine", "sine"])
@pytest.mark.parametrize("cells", [8, 9])
def test_synthesis_inverts_analysis_on_resolved_modes(basis, cells):
    axis = uniform_axis(cells, True)
    count = resolved_modes(basis, 100, cells)
    analysis, synthesis = transform_matrices(basis, count, axis.centres, axis.widths)
    projection = synthesis @ analysis
    assert torch.allclose(projection @ projection, projection, atol=1e-12)
    rank = {"fourier": 2 * count - 1, "cosine": count, "sine": count}[basis]
    assert abs(float(projection.trace()) - rank) < 1e-10


def test_signed_matrices_are_the_complex_transform(generator):
    axis = uniform_axis(10, True)
    into, out = signed_matrices("fourier", 4, 3, axis.centres, axis.widths)
    field = torch.randn(10, 2, dtype=torch.float64, generator=generator)
    numbers = torch.view_as_complex(field)
    order = torch.cat([frequencies("fourier", 4), -frequencies("fourier", 4)[1:].flip(0)])
    waves = torch.exp(-2j * np.pi * order[:, None] * axis.centres)
    coefficients = waves @ numbers / 10
    stacked = into @ field.T.flatten()
    assert torch.allclose(torch.complex(*stacked.view(2, -1)), coefficients)
    back = out @ stacked
    assert torch.allclose(torch.complex(*back.view(2, -1)), waves.conj().T @ coefficients)
