"""Slopes of single edges: hand-solved ones, the order exact <= hull <= lemma, and attempts to find a steeper one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrakan.nn.kan import SILU_LIPSCHITZ, KANLayer
from spectrakan.theory.kan_bounds import exact_bounds, hull_bounds, lemma_bounds
from spectrakan.theory.slopes import edge_pieces, enclose


def shaken_layer(
    order: int, extension: str, seed: int, size: float = 0.5, shape: tuple[int, int] = (3, 4)
) -> KANLayer:
    """Away from the symmetric start: random weights, knots pulled about."""
    generator = torch.Generator().manual_seed(seed)
    layer = KANLayer(*shape, spline_order=order, num_intervals=4, extension=extension).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(size * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return layer


def plain_spline(coefficients: list[float], order: int, extension: str, base: float = 0.0) -> KANLayer:
    """One edge with given coefficients on knots of spacing 1/2."""
    intervals = len(coefficients) - order
    layer = KANLayer(1, 1, spline_order=order, num_intervals=intervals, extension=extension).double()
    layer.knots.reset(0.5 * torch.arange(intervals + 2 * order + 1, dtype=torch.float64)[None])
    with torch.no_grad():
        layer.base_weight.fill_(base)
        layer.spline_weight.fill_(2.0)
        layer.coefficients.copy_(torch.tensor(coefficients, dtype=torch.float64))
    return layer


def test_a_linear_spline_is_as_steep_as_its_steepest_piece():
    # Hats of height 0, 1, 3, 2 at spacing 1/2, times 2: slopes 4, 8, -4; with nothing beyond also 0 and -8.
    straight = plain_spline([0.0, 1.0, 3.0, 2.0], 1, "linear")
    assert float(exact_bounds(straight)) == pytest.approx(8.0, rel=2e-8)
    assert hull_bounds(straight).item() == pytest.approx(8.0, rel=1e-12)
    assert lemma_bounds(straight).item() == pytest.approx(2 * 6 * 2 / 0.5, rel=1e-12)
    ended = plain_spline([0.0, 1.0, 3.0, 5.0], 1, "zero")
    assert float(exact_bounds(ended)) == pytest.approx(20.0, rel=2e-8)
    # On the last piece of the grid alone it is gentler.
    low, high = torch.tensor([0.6]).double(), torch.tensor([0.9]).double()
    assert float(exact_bounds(straight, low, high)) == pytest.approx(4.0, rel=2e-8)


def test_a_single_quadratic_bump_is_steepest_at_its_inner_knots():
    # B of order 2 on spacing h has slope 1/h at its inner knots; times the weight 2.
    bump = plain_spline([0.0, 0.0, 1.0, 0.0, 0.0], 2, "zero")
    assert float(exact_bounds(bump)) == pytest.approx(4.0, rel=2e-8)


def test_a_single_cubic_bump_has_the_known_slope():
    # The cubic B-spline has its largest slope 2/3 / h at 2/3 h into the second piece.
    bump = plain_spline([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], 3, "zero")
    assert float(exact_bounds(bump)) == pytest.approx(2 * 2 / 3 / 0.5, rel=2e-8)


def test_the_base_alone_is_as_steep_as_silu():
    for extension in ("linear", "zero"):
        base = plain_spline([0.0] * 6, 3, extension, base=-1.5)
        assert float(exact_bounds(base)) == pytest.approx(1.5 * SILU_LIPSCHITZ, rel=1e-7)
    far = torch.tensor([-1.0]).double(), torch.tensor([0.0]).double()
    assert float(exact_bounds(base, *far)) == pytest.approx(1.5 * 0.5, rel=1e-7)


@pytest.mark.parametrize("extension", ["linear", "zero"])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_no_sampled_slope_beats_the_exact_one_and_it_is_reached(order, extension):
    layer = shaken_layer(order, extension, seed=order)
    exact = exact_bounds(layer)
    points = torch.linspace(-12, 12, 60_001, dtype=torch.float64).expand(3, -1).contiguous()
    slopes = (layer.edge_curves(points).diff(dim=-1) / points.diff(dim=-1)).abs().amax(-1)
    assert bool((slopes <= exact * (1 + 1e-9)).all())
    assert bool((slopes >= 0.98 * exact).all())
    assert bool((exact <= hull_bounds(layer) * (1 + 1e-8)).all())
    assert bool((hull_bounds(layer) <= lemma_bounds(layer)).all())
    spacing = layer.knots().diff(dim=1).min(dim=1).values
    lemma = layer.spline_weight.abs() * layer.coefficients.abs().sum(-1) * 2 / spacing
    assert torch.allclose(lemma_bounds(layer), layer.base_weight.abs() * SILU_LIPSCHITZ + lemma)
    x = torch.linspace(2.3, 2.5, 100001, dtype=torch.float64, requires_grad=True)
    steepest = torch.autograd.grad(torch.nn.functional.silu(x).sum(), x)[0].max()
    assert 0 <= SILU_LIPSCHITZ - float(steepest) < 1e-9


@settings(max_examples=15, deadline=None)
@given(
    order=st.integers(1, 5),
    extension=st.sampled_from(["linear", "zero"]),
    seed=st.integers(0, 10**6),
    middle=st.floats(-4, 4),
    radius=st.floats(0, 3),
)
def test_enclosures_hold_values_and_slopes(order, extension, seed, middle, radius):
    layer = shaken_layer(order, extension, seed)
    low, high = (torch.full((3, 1), end, dtype=torch.float64) for end in (middle - radius, middle + radius))
    pieces = edge_pieces(layer)
    points = torch.linspace(middle - radius, middle + radius, 500, dtype=torch.float64).expand(3, -1).contiguous()
    curves = layer.edge_curves(points)
    least, most = enclose(pieces, low, high, 0)
    assert bool((curves >= least - 1e-9).all())
    assert bool((curves <= most + 1e-9).all())
    least, most = enclose(pieces, low, high, 1)
    if radius > 1e-3:
        slopes = curves.diff(dim=-1) / points.diff(dim=-1)
        assert bool((slopes >= least - 1e-7).all())
        assert bool((slopes <= most + 1e-7).all())
    exact = exact_bounds(layer, low[:, 0], high[:, 0])
    assert bool((exact <= torch.maximum(least.abs(), most.abs())[..., 0] * (1 + 1e-6) + 1e-9).all())


def test_the_differentiable_bounds_have_gradients_that_lower_them():
    for bounds in (lemma_bounds, hull_bounds):
        layer = shaken_layer(3, "linear", seed=7)
        before = bounds(layer).sum()
        before.backward()
        with torch.no_grad():
            for parameter in layer.parameters():
                if parameter.grad is not None:
                    parameter.sub_(1e-4 * parameter.grad)
        assert bounds(layer).sum().item() < before.item()
        assert layer.knots.logit.grad is not None
