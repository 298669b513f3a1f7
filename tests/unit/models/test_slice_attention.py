"""Slice attention against plain loops in float64."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.models.transolver import SMALLEST_SHARE, SliceAttention


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


@pytest.mark.parametrize("num_slices", [3, 11])
@torch.no_grad()
def test_it_is_the_sums_of_its_equations(num_slices, generator):
    torch.manual_seed(0)
    layer = SliceAttention(8, 2, num_slices).double()
    layer.temperature.copy_(torch.tensor([0.01, 0.7]))  # the first is below the clamp
    x = torch.randn(2, 10, 8, dtype=torch.float64, generator=generator)
    shares = shares_of(10, generator)
    ours = layer(x, shares)
    for sample, row in zip(ours, x, strict=True):
        expected = by_loops(layer, row, layer.content(row), layer.address(row), shares)
        assert torch.allclose(sample, expected, atol=1e-10)


def test_cells_may_come_in_any_order(generator):
    torch.manual_seed(0)
    layer = SliceAttention(8, 2, 3).double()
    x, shares = torch.randn(1, 10, 8, dtype=torch.float64, generator=generator), shares_of(10, generator)
    order = torch.randperm(10, generator=generator)
    assert torch.allclose(layer(x, shares)[:, order], layer(x[:, order], shares[order]), atol=1e-12)
