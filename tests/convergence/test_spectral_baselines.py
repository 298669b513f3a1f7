"""Kernels and operators under refinement: the same weights on finer cells, with the order measured."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from small_models import SMALL

import spectrakan as sk
from spectrakan.models.lno import PoleResidue
from spectrakan.nn.axis import axes_of
from spectrakan.nn.local_kernels import DifferentialKernel, LocalIntegral


def centres(cells: int) -> torch.Tensor:
    return (torch.arange(cells, dtype=torch.float64) + 0.5) / cells


def order(errors: list[float], factor: float) -> float:
    """Slope of log error against log cell width by least squares."""
    steps = np.arange(len(errors)) * math.log(factor)
    return -float(np.polyfit(steps, np.log(errors), 1)[0])


@pytest.mark.parametrize("periodic", [True, False])
def test_differential_kernel_converges_to_the_derivative_in_one_dimension(periodic):
    torch.manual_seed(0)
    layer = DifferentialKernel(2, 1, 0.1).double()
    slope = 0.1 * (layer.weight[:, :, 2] - layer.weight[:, :, 0]).detach()
    errors = []
    for cells in (32, 64, 128, 256):
        x = centres(cells)
        fields = torch.stack([torch.sin(2 * torch.pi * x), torch.cos(4 * torch.pi * x) if periodic else torch.exp(x)])
        rates = torch.stack(
            [
                2 * torch.pi * torch.cos(2 * torch.pi * x),
                -4 * torch.pi * torch.sin(4 * torch.pi * x) if periodic else torch.exp(x),
            ]
        )
        found = layer(fields[:, None], axes_of((cells,), None, [periodic]))[:, 0]
        errors.append((found - slope @ rates).abs().max().item())
    assert 0.9 < order(errors, 2) < 1.2, errors


@pytest.mark.parametrize("periodic", [True, False])
def test_differential_kernel_converges_on_cells_of_any_shape_in_two_dimensions(periodic):
    """Also where one axis is refined and the other is not in proportion: cells 1:1, then 1:2, 1:4, 1:8."""
    torch.manual_seed(0)
    layer = DifferentialKernel(1, 2, 1.0).double()
    weight = layer.weight[0, 0].detach()
    across, along = (weight[2] - weight[0]).sum(), (weight[:, 2] - weight[:, 0]).sum()
    for sizes in ([(32, 32), (64, 64), (128, 128)], [(32, 32), (64, 128), (128, 512)]):
        errors = []
        for size in sizes:
            x, y = torch.meshgrid(*map(centres, size), indexing="ij")
            u = torch.sin(2 * torch.pi * x) * torch.cos(2 * torch.pi * y)
            du = 2 * torch.pi * torch.cos(2 * torch.pi * x) * torch.cos(2 * torch.pi * y)
            dv = -2 * torch.pi * torch.sin(2 * torch.pi * x) * torch.sin(2 * torch.pi * y)
            found = layer(u[None, None], axes_of(size, None, [periodic] * 2))[0, 0]
            errors.append((found - across * du - along * dv).abs().max().item())
        assert order(errors, 2) > 0.9, errors


@torch.no_grad()
def test_derivatives_in_a_row_stay_bounded_at_the_ends():
    """Each divides by h what the one before left different in the end cells: three in a row still converge."""
    torch.manual_seed(0)
    layers = [DifferentialKernel(1, 1, 1.0).double() for _ in range(3)]
    slopes = [float(layer.weight[0, 0, 2] - layer.weight[0, 0, 0]) for layer in layers]
    errors = []
    for cells in (64, 256, 1024):
        x, axes = centres(cells), axes_of((cells,), None, [False])
        field = torch.exp(2 * x)[None, None]
        for layer in layers[:2]:
            field = layer(field, axes)
        errors.append(float((field[0, 0] - 4 * slopes[0] * slopes[1] * torch.exp(2 * x)).abs().max()))
        third = layers[2](field, axes)[0, 0]
        assert float(third.abs().max()) < 8 * abs(math.prod(slopes)) * math.exp(2) * 3
    assert order(errors, 4) > 0.9, errors


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("dims", [1, 2])
def test_local_integral_converges_at_second_order(dims, periodic):
    """Against the same kernel on a far finer grid, at shared points: sizes in ratio 3 share their cell centres."""
    torch.manual_seed(0)
    layer = LocalIntegral(1, dims, 0.21, 3).double()
    sizes, finest = ((15, 45, 135), 1215) if dims == 1 else ((15, 45, 135), 405)

    def answer(cells: int) -> torch.Tensor:
        mesh = torch.meshgrid(*[centres(cells)] * dims, indexing="ij")
        field = sum((k + 1) * torch.sin(2 * torch.pi * x + k) for k, x in enumerate(mesh)) + torch.cos(
            2 * torch.pi * sum(mesh)
        )
        found = layer(field[None, None], axes_of((cells,) * dims, None, [periodic] * dims))[0, 0].detach()
        ratio = cells // 15
        return found[(slice(ratio // 2, None, ratio),) * dims]

    reference = answer(finest)
    errors = [(answer(cells) - reference).abs().max().item() for cells in sizes]
    assert order(errors, 3) > 1.7, errors
    assert errors[-1] < 1e-2 * float(reference.abs().max())


def test_local_integral_of_a_wave_is_its_transform():
    """On a periodic line e_0 is a hat of width R / P, whose transform is sinc²: waves come out scaled by it."""
    layer = LocalIntegral(1, 1, 0.4, 2).double()
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[0] = 1.0
    errors = []
    for cells in (64, 128, 256):
        wave = torch.cos(6 * torch.pi * centres(cells))
        factor = float(np.sinc(3 * 0.2)) ** 2
        found = layer(wave[None, None], axes_of((cells,), None, [True]))[0, 0]
        errors.append((found - factor * wave).abs().max().item())
    assert order(errors, 2) > 1.9


def test_pole_residue_layer_converges_for_fields_that_are_not_periodic():
    """Where the series jumps at the ends the error still falls with the cell width away from them."""
    torch.manual_seed(0)
    layer = PoleResidue(1, 2, 1).double()
    mu = layer.complex_poles(0)[0, 0].detach().numpy()
    beta = torch.view_as_complex(layer.residues)[0, 0].detach().numpy()
    errors = []
    for cells in (32, 64, 128, 256):
        x = centres(cells)
        # int_0^x e^{mu (x - s)} s ds = (e^{mu x} - 1 - mu x) / mu²
        exact = sum(
            b * (np.exp(m * x.numpy()) - 1 - m * x.numpy()) / m**2 for b, m in zip(beta, mu, strict=True)
        ).real
        found = layer(x[None, None], axes_of((cells,), None, [False]))[0, 0].detach().numpy()
        errors.append(float(np.abs(found - exact)[cells // 8 : -cells // 8].max()))
    assert order(errors, 2) > 0.9, errors


def smooth_input(cells: tuple[int, ...]) -> torch.Tensor:
    mesh = torch.meshgrid(*[centres(n) for n in cells], indexing="ij")
    waves = [torch.sin(2 * torch.pi * x + k) / (k + 1) for k, x in enumerate(mesh)]
    return torch.stack([sum(waves), torch.cos(2 * torch.pi * mesh[0]) + 0.3 * waves[-1]], dim=-1)[None, None]


CHOICES = {
    "fno": [{"padding": 0}],
    "ffno": [{"num_layers": 4, "gain": 1.0}],
    "lno": [{}, {"num_layers": 2, "norm": True}],
    "local_fno": [{}],
}


@pytest.mark.parametrize(
    ("name", "choices"), [(name, c) for name, all_of in CHOICES.items() for c in all_of], ids=str
)
@pytest.mark.parametrize("boundary", ["periodic", "wall"])
@pytest.mark.parametrize("dims", [1, 2])
def test_operators_converge_under_refinement(name, choices, dims, boundary):
    """The change from one grid to the next falls at first order or better, and becomes small; means over cells."""
    torch.manual_seed(0)
    facts = sk.OperatorSignature(
        space_dims=dims, history=1, in_channels=2, out_channels=1, boundary=(boundary,) * dims, steady=True
    )
    model = sk.build_model(name, facts, **{**SMALL[name], **choices}).double()
    sizes = (32, 64, 128, 256, 512) if dims == 1 else (32, 64, 128)
    outputs = []
    for cells in sizes:
        with torch.no_grad():
            output = model(smooth_input((cells,) * dims))
        for axis in range(1, dims + 1):
            output = output.unflatten(axis, (32, -1)).mean(axis + 1)
        outputs.append(output)
    changes = [float((fine - coarse).abs().max()) for coarse, fine in pairwise(outputs)]
    assert order(changes, 2) > 0.9, changes
    # Four derivatives in a row converge at first order only, and from farther away.
    assert changes[-1] < (0.1 if name == "local_fno" else 0.02) * float(outputs[-1].abs().max())


def test_published_padding_moves_the_operator_by_the_padded_share():
    """Two cells at any size: the change between grids is of the order of the cell width, not less."""
    torch.manual_seed(0)
    facts = sk.OperatorSignature(space_dims=1, history=1, in_channels=2, out_channels=1, steady=True)
    model = sk.build_model("fno", facts, **SMALL["fno"]).double()
    with torch.no_grad():
        outputs = [model(smooth_input((n,))).unflatten(1, (32, -1)).mean(2) for n in (32, 64, 128, 256, 512)]
    changes = [float((fine - coarse).abs().max()) for coarse, fine in pairwise(outputs)]
    assert 0.7 < order(changes, 2) < 1.6, changes
