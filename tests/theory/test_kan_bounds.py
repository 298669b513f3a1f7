"""Bounds of whole KANs, held against pairs, Jacobians and gradient ascent."""

from __future__ import annotations

import pytest
import torch

from spectrakan.nn.kan import KAN
from spectrakan.theory.kan_bounds import box_bound, box_images, product_bound


def shaken_kan(widths: list[int], seed: int, order: int = 3, extension: str = "linear") -> KAN:
    generator = torch.Generator().manual_seed(seed)
    kan = KAN(widths, spline_order=order, extension=extension).double()
    with torch.no_grad():
        for parameter in kan.parameters():
            parameter.add_(0.4 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return kan


def value(bound: torch.Tensor) -> float:
    return float(bound.detach())


def test_a_chain_of_single_linear_edges_is_exact():
    kan = KAN([1, 1, 1], spline_order=1, num_intervals=2, grid_range=(-1.0, 1.0)).double()
    with torch.no_grad():
        for layer, slope in zip(kan.layers, (3.0, -2.0), strict=True):
            layer.base_weight.zero_()
            layer.spline_weight.fill_(1.0)
            layer.coefficients.copy_(slope * torch.tensor([-1.0, 0.0, 1.0]))
    ball = torch.tensor([[-0.2]]).double(), torch.tensor([[0.4]]).double()
    assert float(box_bound(kan, *ball)) == pytest.approx(6.0, rel=1e-7)
    assert value(product_bound(kan, "exact")) == pytest.approx(6.0, rel=1e-7)
    low, high = box_images(kan, *ball)[-1]
    assert float(low) == pytest.approx(-2.4, abs=1e-6)
    assert float(high) == pytest.approx(1.2, abs=1e-6)


@pytest.mark.parametrize("extension", ["linear", "zero"])
@pytest.mark.parametrize("order", [1, 3])
def test_ten_thousand_pairs_and_ascent_never_beat_a_bound(order, extension, generator):
    kan = shaken_kan([4, 8, 3], seed=order, order=order, extension=extension)
    everywhere = value(product_bound(kan, "exact"))
    assert everywhere <= value(product_bound(kan, "hull")) <= value(product_bound(kan, "lemma"))
    centre, radius = torch.zeros(1, 4).double(), 0.5
    boxed = float(box_bound(kan, centre - radius, centre + radius))
    assert boxed <= everywhere
    left, right = (2 * torch.rand(10_000, 4, generator=generator).double() - 1 for _ in range(2))
    for reach, bound in ((radius, boxed), (5.0, everywhere)):
        change = (kan(reach * left) - kan(reach * right)).norm(dim=1).detach()
        assert float((change / (reach * (left - right)).norm(dim=1)).max()) <= bound
    steepest = _ascend(kan, radius, generator)
    assert steepest <= boxed
    assert boxed <= 12 * steepest


def test_a_shrinking_box_comes_down_to_the_jacobian(generator):
    kan = shaken_kan([5, 16, 7], seed=3)
    z = torch.randn(3, 5, generator=generator).double()
    jacobians = torch.stack([torch.autograd.functional.jacobian(lambda row: kan(row[None])[0], row) for row in z])
    true = torch.linalg.matrix_norm(jacobians, ord=2)
    bounds = [box_bound(kan, z - radius, z + radius) for radius in (1e-1, 1e-3, 1e-6)]
    assert bool((bounds[0] >= bounds[1]).all())
    assert torch.allclose(bounds[2], true, rtol=1e-3)
    assert bool((bounds[2] >= true).all())


def test_bounds_are_differentiable_functions_of_the_weights():
    kan = shaken_kan([2, 3, 2], seed=5)
    before = product_bound(kan, "hull")
    before.backward()
    with torch.no_grad():
        for parameter in kan.parameters():
            if parameter.grad is not None:
                parameter.sub_(1e-4 * parameter.grad)
    assert value(product_bound(kan, "hull")) < value(before)


def _ascend(kan: KAN, radius: float, generator: torch.Generator) -> float:
    """The largest directional slope that gradient ascent over place and direction finds in the ball."""
    place = (radius * (2 * torch.rand(32, 4, generator=generator) - 1)).double().requires_grad_()
    way = torch.randn(32, 4, generator=generator).double().requires_grad_()
    best = 0.0
    for _ in range(30):
        step = 1e-4 * way / way.norm(dim=1, keepdim=True)
        slopes = (kan(place + step) - kan(place - step)).norm(dim=1) / 2e-4
        best = max(best, slopes.max().item())
        along, turn = torch.autograd.grad(slopes.sum(), (place, way))
        with torch.no_grad():
            place.add_(0.05 * radius * along.sign()).clamp_(-radius + 1e-4, radius - 1e-4)
            way.add_(0.3 * turn / turn.norm(dim=1, keepdim=True).clamp_min(1e-12))
    return best
