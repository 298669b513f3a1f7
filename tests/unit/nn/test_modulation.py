"""Single-query attention against its brute-force form and as a quadrature."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.fields import Grid
from spectrakan.nn.axis import axes_of
from spectrakan.nn.modulation import GlobalModulation


def layer_of(width: int, generator: torch.Generator) -> GlobalModulation:
    layer = GlobalModulation(width, 5, 4).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return layer


def brute_force(layer: GlobalModulation, token, features, volumes, divisor: float):
    """Form every key and value, softmax with the cells' volumes, sum: sample by sample."""
    out = []
    for b in range(token.shape[0]):
        cells = features[:, b].flatten(1)
        query = layer.query.weight @ token[b] + layer.query.bias
        scores = query @ (layer.key[0] @ cells) / divisor
        weights = volumes.flatten() * torch.exp(scores - scores.max())
        out.append((layer.value[0] @ cells) @ (weights / weights.sum()))
    return torch.stack(out)


@pytest.mark.parametrize("size", [(7,), (5, 6), (4, 3, 5)], ids=str)
def test_modulation_is_softmax_attention(size, generator):
    layer, divisor = layer_of(6, generator), 4.0
    token = torch.randn(2, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    features = torch.randn(6, 2, *size, dtype=torch.float64, generator=generator, requires_grad=True)
    edges = [torch.cumsum(0.1 + torch.rand(n + 1, dtype=torch.float64, generator=generator), 0) for n in size]
    for grid in (None, Grid.from_edges(edges)):
        axes = axes_of(size, grid, [False] * len(size))
        volumes = torch.ones(size, dtype=torch.float64) if grid is None else grid.volumes()
        ours, plain = layer(token, features, axes), brute_force(layer, token, features, volumes, divisor)
        assert (ours - plain).abs().max() < 1e-12
        probe = torch.randn(ours.shape, dtype=torch.float64, generator=generator)
        inputs = [token, features, *layer.parameters()]
        for fast, slow in zip(
            torch.autograd.grad((ours * probe).sum(), inputs),
            torch.autograd.grad((plain * probe).sum(), inputs),
            strict=True,
        ):
            assert (fast - slow).abs().max() < 1e-11
        weights = layer.weights(token, features, axes)
        assert (weights.flatten(2).sum(-1) - 1).abs().max() < 1e-13


def test_second_derivatives_are_right(generator):
    layer = layer_of(3, generator)
    token = torch.randn(1, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    features = torch.randn(3, 1, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    axes = axes_of((4,), None, [False])
    assert torch.autograd.gradgradcheck(lambda t, f: layer(t, f, axes), (token, features))


def test_unequal_cells_converge_to_the_value_of_a_fine_even_grid(generator):
    layer = layer_of(2, generator)
    token = torch.randn(1, 5, dtype=torch.float64, generator=generator)

    def value(edges_x, edges_y):
        grid = Grid.from_edges([edges_x, edges_y])
        x, y = torch.meshgrid(*grid.coordinates, indexing="ij")
        features = torch.stack([torch.sin(3 * x + y), torch.exp(-x) * y])[:, None]
        return layer(token, features, axes_of(grid.shape, grid, [False, False]))

    even = torch.linspace(0, 1, 801, dtype=torch.float64)
    fine = value(even, even).detach()
    errors = []
    for cells in (16, 32, 64):
        share = torch.linspace(0, 1, cells + 1, dtype=torch.float64)
        errors.append((value(share**2, (share + share**3) / 2) - fine).abs().max().item())
    assert errors[0] > errors[1] > errors[2]
    assert math.log2(errors[1] / errors[2]) > 1.8, "midpoint rule: second order in the cell width"
