"""A token that conditions the trunk: silent at first, bounded, reached by gradients, the same on every grid."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

import spectrakan as sk
from spectrakan.nn.conditioning import Conditioning

KINDS = ["film", "modes", "both"]
SMALL = {"width": 6, "num_modes": 4, "num_layers": 2, "noise_level": 0.0}


def signature(*boundary: str) -> sk.OperatorSignature:
    return sk.OperatorSignature(
        space_dims=len(boundary), history=2, in_channels=1, out_channels=1, num_params=1, boundary=boundary
    )


def built(kind: str, boundary: tuple[str, ...] = ("periodic",), **settings) -> sk.Operator:
    torch.manual_seed(0)
    return sk.build_model("spectrakan", signature(*boundary), conditioning=kind, **{**SMALL, **settings}).double()


def woken(model: sk.Operator, size: float = 0.5) -> sk.Operator:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.conditioning.parameters():
            parameter.copy_(size * torch.randn(parameter.shape, generator=generator))
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("boundary", [("periodic",), ("wall", "periodic"), ("dirichlet", "wall")], ids=str)
def test_it_starts_silent(kind, boundary, generator):
    settings = (
        {"basis": "cosine"} if boundary[0] == "dirichlet" else {"coarse_num_layers": 1, "coarse_mixing": "axial"}
    )
    x = torch.randn(3, 2, *[12] * len(boundary), 1, generator=generator, dtype=torch.float64)
    params = torch.randn(3, 1, generator=generator, dtype=torch.float64)
    plain = built("readout", boundary, **settings)
    assert torch.equal(built(kind, boundary, **settings)(x, params), plain(x, params))
    assert not torch.allclose(woken(built(kind, boundary, **settings))(x, params), plain(x, params), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_the_maps_and_the_token(kind, generator):
    model = built(kind, pool="dynamics")
    x = torch.randn(3, 2, 16, 1, generator=generator, dtype=torch.float64)
    params = torch.randn(3, 1, generator=generator, dtype=torch.float64)
    model(x, params).square().sum().backward()
    for name, parameter in model.conditioning.named_parameters():
        assert float(parameter.grad.abs().max()) > 0, name
    woken(model, 0.1).zero_grad()
    model(x, params).square().sum().backward()
    assert float(model.global_token.network.layers[0].coefficients.grad.abs().max()) > 0


def test_factors_are_bounded_for_all_tokens(generator):
    """Amplitudes in [1/e, e], all phases, scales in [0, 2], shifts in [-1, 1]; real bases have no phase."""
    layer = Conditioning(3, "both", 5, ("fourier", "cosine"), [4, 0, 4])
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=30.0, generator=generator)
        conditions = layer(torch.randn(50, 3, generator=generator))
    assert [len(each.factors) for each in conditions] == [2, 0, 2]
    for each in (conditions[0], conditions[2]):
        waves, cosines = each.factors
        assert waves.shape == (50, 4, 2)
        assert cosines.shape == (50, 8, 1)
        for size in (waves.norm(dim=2), cosines[..., 0]):
            assert 1 / math.e - 1e-5 < float(size.min()) < 0.4
            assert 2.7 < float(size.max()) < math.e + 1e-5
        assert float(torch.atan2(waves[..., 1], waves[..., 0]).abs().max()) > 3.0
        assert 0.0 <= float(each.scale.min()) < 0.01
        assert 1.99 < float(each.scale.max()) <= 2.0
        assert 0.99 < float(each.shift.abs().max()) <= 1.0


def test_a_phase_shifts_a_wave(generator):
    """Mode k turned by 2 pi k s is the field moved by s: the layer of a moved field."""
    model = built("modes", num_layers=1)
    axial = model.trunk.fine.blocks[0].axial
    field = torch.randn(6, 2, 32, generator=generator, dtype=torch.float64)
    axes, cells = model.axes(torch.zeros(1, 1, 32, 1), None), 5
    angle = -2 * math.pi * torch.arange(4, dtype=torch.float64) * cells / 32
    factor = torch.stack([angle.cos(), angle.sin()], dim=-1).expand(2, -1, -1)
    assert (axial(field, axes, [factor]) - axial(field.roll(cells, 2), axes)).abs().max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_one_operator_on_all_grids(kind):
    model = woken(built(kind, ("wall",), pool="mean"))
    params, outputs = torch.ones(1, 1, dtype=torch.float64), []
    for cells in (32, 64, 128, 256):
        x = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
        history = torch.stack([torch.sin(math.pi * x), torch.cos(3 * x)])[None, ..., None]
        with torch.no_grad():
            outputs.append(model(history, params).view(32, -1).mean(1))
    changes = [float((fine - coarse).abs().max()) for coarse, fine in pairwise(outputs)]
    assert changes[1] < 0.35 * changes[0]
    assert changes[2] < 0.35 * changes[1]
