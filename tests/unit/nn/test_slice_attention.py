"""Slice attention against plain loops in float64, and its two ways of computing against each other."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.errors import ConfigError
from spectrakan.nn.slice_attention import SMALLEST_SHARE, SliceAttention


def softmax(numbers: list[float]) -> list[float]:
    powers = [math.exp(number - max(numbers)) for number in numbers]
    return [power / sum(powers) for power in powers]


def by_loops(layer: SliceAttention, x: torch.Tensor, content, address, shares: torch.Tensor) -> torch.Tensor:
    """One sample `(cells, width)`: every sum of the equations written out."""
    cells, width = x.shape
    heads, slices = layer.num_heads, layer.slice.out_features
    size = width // heads
    joined = torch.zeros(cells, width, dtype=x.dtype)
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        temperature = min(max(float(layer.temperature[h]), 0.1), 5.0)
        belongs = []
        for i in range(cells):
            logits = layer.slice.weight @ address[i, part] + layer.slice.bias
            belongs.append(softmax((logits / temperature).tolist()))
        tokens = []
        for k in range(slices):
            volume = sum(float(shares[i]) * belongs[i][k] for i in range(cells))
            total = sum(float(shares[i]) * belongs[i][k] * content[i, part] for i in range(cells))
            tokens.append(total / (volume + SMALLEST_SHARE))
        mixed = []
        for k in range(slices):
            query = layer.query.weight @ tokens[k]
            scores = [float(query @ (layer.key.weight @ token)) / math.sqrt(size) for token in tokens]
            mixed.append(sum(s * (layer.value.weight @ t) for s, t in zip(softmax(scores), tokens, strict=True)))
        for i in range(cells):
            joined[i, part] = sum(belongs[i][k] * mixed[k] for k in range(slices))
    return joined @ layer.out.weight.T + layer.out.bias


def shares_of(cells: int, generator: torch.Generator) -> torch.Tensor:
    shares = torch.rand(cells, dtype=torch.float64, generator=generator) + 0.1
    return shares / shares.sum()


@pytest.mark.parametrize("num_slices", [3, 11], ids=["folded", "direct"])
@torch.no_grad()
def test_it_is_the_sums_of_its_equations(num_slices, generator):
    torch.manual_seed(0)
    layer = SliceAttention(8, 2, num_slices).double()
    layer.temperature.copy_(torch.tensor([0.01, 0.7]))  # the first is below the clamp
    assert layer.folds == (num_slices == 3)
    x = torch.randn(2, 10, 8, dtype=torch.float64, generator=generator)
    shares = shares_of(10, generator)
    ours = layer(x, shares, (10,))
    for sample, row in zip(ours, x, strict=True):
        expected = by_loops(layer, row, layer.content(row), layer.address(row), shares)
        assert torch.allclose(sample, expected, atol=1e-10)


@pytest.mark.parametrize("space", [(12,), (3, 4), (2, 3, 2)])
@torch.no_grad()
def test_convolutions_see_neighbours_on_the_grid(space, generator):
    torch.manual_seed(0)
    layer = SliceAttention(4, 2, 3, projection="convolution", space_dims=len(space)).double()
    x = torch.randn(1, 12, 4, dtype=torch.float64, generator=generator)
    shares = shares_of(12, generator)
    field = x[0].T.reshape(1, 4, *space)
    content, address = (part(field).reshape(4, 12).T for part in (layer.content, layer.address))
    assert torch.allclose(layer(x, shares, space)[0], by_loops(layer, x[0], content, address, shares), atol=1e-10)


def test_gradients_of_the_folded_way_are_those_of_the_direct_way(generator, monkeypatch):
    torch.manual_seed(0)
    layer = SliceAttention(12, 3, 4).double()
    x = torch.randn(2, 9, 12, dtype=torch.float64, generator=generator, requires_grad=True)
    shares = shares_of(9, generator)
    inputs = [x, *layer.parameters()]
    folded = torch.autograd.grad(layer(x, shares, (9,)).square().sum(), inputs)
    monkeypatch.setattr(SliceAttention, "folds", property(lambda self: False))
    direct = torch.autograd.grad(layer(x, shares, (9,)).square().sum(), inputs)
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(folded, direct, strict=True))


def test_cells_may_come_in_any_order(generator):
    torch.manual_seed(0)
    layer = SliceAttention(8, 2, 3).double()
    x, shares = torch.randn(1, 10, 8, dtype=torch.float64, generator=generator), shares_of(10, generator)
    order = torch.randperm(10, generator=generator)
    assert torch.allclose(layer(x, shares, (10,))[:, order], layer(x[:, order], shares[order], (10,)), atol=1e-12)


def test_a_width_that_heads_do_not_divide_is_refused():
    with pytest.raises(ConfigError, match="multiple of num_heads, got 10 and 4"):
        SliceAttention(10, 4, 3)
