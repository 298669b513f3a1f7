"""DyMixOp: one operator on all grids, silent products at first, known by name to the campaign."""

from __future__ import annotations

import math

import pytest
import torch

import spectrakan as sk
from experiments.dymixop import DyMixOp, DyMixOpConfig, MixingLayer, register_dymixop
from spectrakan.fields import OperatorSignature
from spectrakan.nn.axis import axes_of

SMALL = DyMixOpConfig(width=6, num_layers=2, num_modes=3)


def model_of(dims: int, kind: str) -> DyMixOp:
    torch.manual_seed(0)
    signature = OperatorSignature(
        space_dims=dims, history=1, in_channels=1, out_channels=1, num_params=1, boundary=(kind,) * dims
    )
    model = DyMixOp(signature, SMALL).double()
    with torch.no_grad():  # as after training: the products count
        for layer in model.layers:
            layer.spread.weight.normal_(0, 0.3)
    return model


def smooth(cells: int, dims: int) -> torch.Tensor:
    line = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    mesh = torch.meshgrid(*[line] * dims, indexing="ij")
    return sum(torch.cos(2 * math.pi * (axis - 0.1 * number)) for number, axis in enumerate(mesh))[
        None, None, ..., None
    ]


@pytest.mark.parametrize(("dims", "kind"), [(1, "periodic"), (2, "periodic"), (1, "wall")])
def test_refinement_by_three_changes_the_output_at_first_order(dims, kind):
    """Every cell has a cell of the finer grid at its centre."""
    model, params = model_of(dims, kind), torch.ones(1, 1, dtype=torch.float64)
    changes = []
    for cells in (18, 54) if dims == 2 else (81, 243):
        with torch.no_grad():
            coarse, fine = model(smooth(cells, dims), params), model(smooth(3 * cells, dims), params)
        place = (slice(None), *[slice(1, None, 3)] * dims)
        changes.append(float((coarse - fine[place]).abs().max()))
        assert float(coarse.std()) > 0.02
    assert changes[1] < 0.45 * changes[0]


def test_products_are_silent_at_first_and_the_derivative_is_one():
    torch.manual_seed(0)
    layer = MixingLayer(8, 1, SMALL).double()
    axes = axes_of((64,), None, [True])
    field = torch.randn(8, 2, 64, dtype=torch.float64)
    with torch.no_grad():
        product = layer.spread(field, axes) * layer.factor(field)
        assert float(product.std()) < 0.1 * float(layer.local(field).std())
        assert float(layer.differential(torch.ones_like(field), axes).abs().max()) < 1e-12


@pytest.mark.parametrize("cells", [(4,), (17,), (5, 12)], ids=str)
def test_any_size_is_taken_and_every_weight_learns(cells):
    register_dymixop()
    signature = OperatorSignature(space_dims=len(cells), history=2, in_channels=2, out_channels=2, num_params=1)
    model = sk.build_model("dymixop", signature, width=4, num_layers=2, num_modes=3)
    loss = model(torch.randn(3, 2, *cells, 2), params=torch.rand(3, 1)).square().mean()
    loss.backward()
    idle = [name for name, each in model.named_parameters() if each.grad is None or not each.grad.abs().max() > 0]
    assert idle == []


def test_sizes_on_one_axis_are_the_published_ones():
    line = DyMixOp(OperatorSignature(space_dims=1, history=10, in_channels=1, out_channels=1), DyMixOpConfig())
    width, layers, modes = 48, 8, 12
    layer = 2 * modes * width**2 + 2 * (width**2 + width) + 3 * width**2 + 4 * width**2 + 3 * width
    lift = 96 * 11 + 96 + 96 * width + width
    readout = width * 96 + 96 + 96 + 1
    assert sum(each.numel() for each in line.parameters()) == layers * layer + lift + readout + layers + 1 + 1
