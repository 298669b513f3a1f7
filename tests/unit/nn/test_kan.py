"""The KAN: its values, its knots, its refinement and what is known of its slopes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.nn import KAN, KANLayer
from spectrakan.nn.kan import Knots
from spectrakan.nn.spline_layer import SplineLayer, extended_basis, plain_layer


def shaken(kan: torch.nn.Module, generator: torch.Generator) -> torch.nn.Module:
    """Away from the symmetric start: random weights, knots pulled about."""
    kan = kan.double()
    with torch.no_grad():
        for parameter in kan.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return kan


@pytest.mark.parametrize("extension", ["zero", "linear"])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_layer_is_the_sum_of_its_edge_functions(order, extension, generator):
    layer = shaken(KANLayer(3, 2, spline_order=order, num_intervals=4, extension=extension), generator)
    x = 3 * torch.randn(50, 3, dtype=torch.float64, generator=generator)
    knots = layer.knots().detach().numpy()
    expected = np.zeros((50, 2))
    for j in range(2):
        for i in range(3):
            spline = BSpline(knots[i], layer.coefficients[j, i].detach().numpy(), order, extrapolate=False)
            values = x[:, i].numpy()
            if extension == "zero":
                # The plain sum of basis functions over all knots, also where they no longer add up to one.
                elements = [BSpline.basis_element(knots[i, r : r + order + 2], False) for r in range(4 + order)]
                curve = sum(
                    c * np.nan_to_num(element(values))
                    for c, element in zip(layer.coefficients[j, i].detach().numpy(), elements, strict=True)
                )
            else:
                low, high = knots[i, order], knots[i, -order - 1]
                held = np.clip(values, low, np.nextafter(high, low))
                curve = spline(held) + spline.derivative()(held) * (values - held)
            base = values / (1 + np.exp(-values))
            base_weight, spline_weight = layer.base_weight[j, i].item(), layer.spline_weight[j, i].item()
            expected[:, j] += base_weight * base + spline_weight * curve
    assert np.abs(layer(x).detach().numpy() - expected).max() < 1e-8
    curves = layer.edge_curves(x.T.contiguous())
    assert torch.allclose(curves.sum(1).T, layer(x), atol=1e-10)


def test_value_and_slope_go_on_across_the_ends_of_the_grid(generator):
    layer = shaken(KANLayer(1, 1), generator)
    knots = layer.knots().detach()[0]
    for end in (knots[3], knots[-4]):
        # Straight outside, so the value just outside is value + slope * step up to curvature inside.
        for step in (1e-4, 1e-5):
            x = torch.stack([end - step, end, end + step]).view(3, 1).requires_grad_()
            y = layer(x)
            slope = torch.autograd.grad(y.sum(), x)[0][:, 0]
            y = y.detach()
            assert abs(float(y[2] - y[0])) < 2 * step * float(slope.abs().max()) + 1e-9
            assert float((slope[2] - slope[0]).abs()) < 200 * step
    far = torch.tensor([[50.0]], dtype=torch.float64, requires_grad=True)
    spline_part = layer(far) - layer.base_weight * torch.nn.functional.silu(far)
    assert float(torch.autograd.grad(spline_part.sum(), far)[0].abs()) > 1e-3, "no dead zone outside the grid"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_knots_stay_sorted_under_a_thousand_hostile_gradients(dtype, generator):
    knots = Knots(torch.linspace(-1, 1, 12).expand(4, -1)).to(dtype)
    optimizer = torch.optim.SGD(knots.parameters(), lr=10.0)
    for _ in range(1000):
        optimizer.zero_grad()
        push = 100 * torch.randn(4, 12, dtype=dtype, generator=generator)
        (knots() * push).sum().backward()
        optimizer.step()
        spacing = knots().diff(dim=1)
        assert bool((spacing >= knots.min_spacing).all())
    assert float(knots.logit.detach().abs().max()) > 10, "the gradients were not hostile"


def test_fitting_the_grid_puts_knots_where_samples_are_and_keeps_values_there(generator):
    kan = KAN([2, 3]).double()
    x = torch.randn(4000, 2, dtype=torch.float64, generator=generator) * torch.tensor([0.1, 30.0])
    x = x + torch.tensor([5.0, -100.0])
    kan.fit_grid(x)
    knots = kan.layers[0].knots().detach()
    inner = knots[:, 3:-3]
    assert torch.all(inner[:, 0] <= x.amin(0) + 1e-6)
    assert torch.all(inner[:, -1] >= x.amax(0) - 1e-6)
    for i in range(2):
        share = torch.bucketize(x[:, i].contiguous(), inner[i]).bincount(minlength=7)[1:-1] / 4000
        assert float(share.min()) > 0.1, "quantile knots hold a fair share of samples each"
    # Within a smooth target's reach a second fit to the same data changes nothing much.
    before = kan(x).detach()
    kan.fit_grid(x)
    assert (kan(x) - before).abs().max() < 1e-6 * before.abs().max()


def test_an_input_that_never_varies_still_gets_a_grid():
    kan = KAN([2, 3])
    kan.fit_grid(torch.tensor([[1.0, 7.0]]).expand(10, 2))
    assert torch.isfinite(kan(torch.tensor([[1.0, 7.0], [2.0, 8.0]]))).all()
    assert bool((kan.layers[0].knots().diff(dim=1) > 0).all())


def test_a_kan_learns_a_function_of_two_variables(generator):
    torch.manual_seed(1)
    kan = KAN([2, 5, 1], num_intervals=8, grid_range=(-2.0, 2.0)).double()
    x = 2 * torch.rand(1000, 2, dtype=torch.float64, generator=generator) - 1
    y = torch.exp(torch.sin(np.pi * x[:, :1]) + x[:, 1:] ** 2)
    kan.fit_grid(x)
    optimizer = torch.optim.LBFGS(kan.parameters(), max_iter=400, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = (kan(x) - y).square().mean()
        value.backward()
        return value

    optimizer.step(loss)
    test = 2 * torch.rand(512, 2, dtype=torch.float64, generator=generator) - 1
    truth = torch.exp(torch.sin(np.pi * test[:, :1]) + test[:, 1:] ** 2)
    error = (kan(test) - truth).square().mean().sqrt() / truth.std()
    assert error.item() < 0.02


def test_wrong_shapes_and_sizes_are_refused():
    with pytest.raises(ShapeError, match=r"takes \(batch, 2\), got \(5, 3\)"):
        KAN([2, 3])(torch.zeros(5, 3))
    with pytest.raises(ConfigError, match="at least an input and an output"):
        KAN([2])
    with pytest.raises(ConfigError, match="order >= 1"):
        KANLayer(1, 1, spline_order=0)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("intervals", [1, 4])
def test_the_gradients_of_the_splines_hold_on_the_grid_and_beyond_it(order, intervals, generator):
    knots = (0.1 + torch.rand(3, intervals + 2 * order + 1, dtype=torch.float64, generator=generator)).cumsum(1)
    span = knots[:, -1:] - knots[:, :1]
    x = knots[:, :1] - 1 + (span + 2) * torch.rand(3, 12, dtype=torch.float64, generator=generator)
    first, last = knots[:, order, None], knots[:, -order - 1, None]
    assert all(part.any() for part in (x < first, x > last, (x > first) & (x < last)))
    inputs = [tensor.clone().requires_grad_() for tensor in (x, knots)]
    assert torch.autograd.gradcheck(lambda x, knots: extended_basis(x, knots, order), inputs)
    assert torch.autograd.gradgradcheck(lambda x, knots: extended_basis(x, knots, order), inputs)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_fused_layer_is_the_plain_one_with_all_its_gradients(order, generator):
    layer = shaken(KANLayer(4, 3, spline_order=order, num_intervals=4), generator)
    weights = [layer.base_weight, layer.spline_weight, layer.coefficients]
    x = (2 * torch.randn(4, 30, dtype=torch.float64, generator=generator)).requires_grad_()
    inputs = [x, layer.knots().detach().requires_grad_(), *weights]
    fused = SplineLayer.apply(*inputs, order)
    plain = plain_layer(x, extended_basis(x, inputs[1], order), *weights)
    with torch.no_grad():
        assert torch.equal(fused, SplineLayer.forward(None, *inputs, order))
    torch.testing.assert_close(fused, plain, rtol=1e-12, atol=1e-12)
    above = torch.randn(plain.shape, dtype=torch.float64, generator=generator)
    for ours, true in zip(*(torch.autograd.grad(y, inputs, above) for y in (fused, plain)), strict=True):
        torch.testing.assert_close(ours, true, rtol=1e-10, atol=1e-10)
    few = [x[:, :3].detach().requires_grad_(), *inputs[1:]]
    assert torch.autograd.gradgradcheck(lambda *given: SplineLayer.apply(*given, order), few)


@pytest.mark.parametrize("distance", [1e3, 1e9, 1e15])
def test_far_outside_the_grid_the_gradient_is_the_slope_at_the_end(distance):
    """Beyond the grid an edge is a straight line, so its slope at any distance is the one just outside."""
    torch.manual_seed(0)
    kan = KAN([1, 1]).double()
    for sign in (-1.0, 1.0):
        near, far = (torch.full((1, 1), sign * x, dtype=torch.float64, requires_grad=True) for x in (1.5, distance))
        spline = [
            torch.tensordot(kan.layers[0].coefficients[0, 0], kan.layers[0].basis(x)[0], 1) for x in (near, far)
        ]
        slopes = [float(torch.autograd.grad(value.sum(), x)[0]) for value, x in zip(spline, (near, far), strict=True)]
        assert slopes[1] == pytest.approx(slopes[0], rel=1e-12)
