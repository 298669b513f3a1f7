"""Closed forms are found where they are, prefer the simple, and say honestly how far off they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrakan.errors import ConfigError
from spectrakan.nn.kan import KAN
from spectrakan.theory.symbolic import suggest, suggest_edges, suggest_first

X = np.sort(np.random.default_rng(0).uniform(-2, 3, 400))


@pytest.mark.parametrize(
    ("shape", "curve", "numbers"),
    [
        ("constant", lambda x: 0 * x + 0.7, (0.0, 1.0, 0.0, 0.7)),
        ("linear", lambda x: -0.3 * x + 2, (-0.3, 1.0, 0.0, 2.0)),
        ("quadratic", lambda x: 0.5 * (x - 0.4) ** 2 - 1, (0.5, 1.0, -0.4, -1.0)),
        ("cubic", lambda x: -2 * (x + 0.3) ** 3 + 1, (-2.0, 1.0, 0.3, 1.0)),
        ("exp", lambda x: 0.2 * np.exp(1.3 * x) - 3, (0.2, 1.3, 0.0, -3.0)),
        ("exp", lambda x: 4 * np.exp(-0.8 * x) + 1, (4.0, -0.8, 0.0, 1.0)),
        ("sin", lambda x: 1.5 * np.sin(3 * x + 0.5) + 0.2, (1.5, 3.0, 0.5, 0.2)),
        ("tanh", lambda x: 0.8 * np.tanh(2 * x - 1) + 0.1, (0.8, 2.0, -1.0, 0.1)),
        ("gaussian", lambda x: 2 * np.exp(-((1.7 * x - 0.9) ** 2)) - 1, (2.0, 1.7, -0.9, -1.0)),
        ("abs", lambda x: 3 * np.abs(x - 0.7) + 0.5, (3.0, 1.0, -0.7, 0.5)),
    ],
)
def test_every_form_is_recovered_with_its_numbers(shape, curve, numbers):
    first = suggest(X, curve(X))[0]
    assert suggest_first(X, curve(X)) == first
    assert first.shape == shape
    assert (first.a, first.b, first.c, first.d) == pytest.approx(numbers, rel=1e-3, abs=1e-3)
    assert first.r2 > 1 - 1e-6
    assert first.max_error < 1e-3
    assert np.allclose(first(X), curve(X), atol=1e-3)


def test_the_simplest_good_form_wins_and_the_rest_follow_by_fit():
    ranked = suggest(X, 2 * X + 0.001 * np.sin(9 * X), good=0.999)
    assert ranked[0].shape == "linear"
    assert [one.r2 for one in ranked[1:]] == sorted((one.r2 for one in ranked[1:]), reverse=True)


def test_a_curve_that_is_none_of_them_is_told_as_such():
    rough = np.sign(np.sin(7 * X)) * X**2
    ranked = suggest(X, rough)
    assert ranked[0].r2 < 0.9
    assert ranked[0].r2 == max(one.r2 for one in ranked)
    error = ranked[0](X) - rough
    assert ranked[0].r2 == pytest.approx(1 - np.square(error).sum() / np.square(rough - rough.mean()).sum())
    assert ranked[0].max_error == pytest.approx(np.abs(error).max())


@settings(deadline=None, max_examples=10)
@given(a=st.floats(0.1, 10), b=st.floats(0.5, 4), c=st.floats(-1, 1), d=st.floats(-5, 5))
def test_any_sine_is_found(a, b, c, d):
    found = {one.shape: one for one in suggest(X, a * np.sin(b * X + c) + d)}
    assert found["sin"].r2 > 1 - 1e-6


def test_the_formula_is_readable():
    assert suggest(X, 3 * (X - 0.5) ** 2 + 1)[0].formula == "3 (x - 0.5)^2 + 1"
    assert suggest(X, 0.25 - X)[0].formula == "-1 x + 0.25"
    assert suggest(X, 0 * X + 2.5)[0].formula == "2.5"


def test_the_edges_of_a_kan_are_read():
    """One edge is made a sine, one a line, by fitting their splines; the KAN is then asked what it holds."""
    kan = KAN([2, 1], num_intervals=30, grid_range=(-1.5, 1.5)).double()
    layer = kan.layers[0]
    x = torch.linspace(-1.4, 1.4, 600, dtype=torch.float64).expand(2, -1)
    basis = layer.basis(x).detach()
    wanted = [torch.sin(4 * x[0] + 0.3), 0.5 * x[1] - 2]
    with torch.no_grad():
        layer.base_weight.zero_()
        layer.spline_weight.fill_(1.0)
        for i in range(2):
            layer.coefficients[0, i] = torch.linalg.lstsq(basis[i].T, wanted[i][:, None], driver="gelsd").solution[
                :, 0
            ]
    samples = x[:, torch.randperm(600, generator=torch.Generator().manual_seed(0))[:300]].T
    ((sine, line),) = suggest_edges(kan, samples)[0]
    assert (sine.shape, line.shape) == ("sin", "linear")
    assert (sine.b, sine.c) == pytest.approx((4.0, 0.3), rel=1e-3)
    assert (line.a, line.d) == pytest.approx((0.5, -2.0), rel=1e-6)


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2, 3], [1, 2, 3]), ([1, 2, 3, 4], [1, 2, 3]), ([1, 2, 3, np.nan], [1] * 4)]
)
def test_too_few_or_broken_points_are_refused(x, y):
    with pytest.raises(ConfigError, match="at least 4 finite points"):
        suggest(np.array(x, dtype=float), np.array(y, dtype=float))
