"""A token that conditions the trunk: silent at first, bounded, reached by gradients, the same on every grid."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

import spectrakan as sk
from spectrakan.nn.conditioning import FAINT, FARTHEST, GAIN, STRONGEST, Conditioning, plain_transported, transported

KINDS = ["film", "transport", "both"]
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
@pytest.mark.parametrize("boundary", [("periodic",), ("wall", "periodic")], ids=str)
def test_a_fresh_model_ignores_the_token_in_its_trunk(kind, boundary, generator):
    model = built(kind, boundary, coarse_num_layers=1, coarse_mixing="axial")
    x = torch.randn(3, 2, *[12] * len(boundary), 1, generator=generator, dtype=torch.float64)
    params = torch.randn(3, 1, generator=generator, dtype=torch.float64)
    token = torch.randn(3, 32, generator=generator, dtype=torch.float64)

    def features(token):
        return model._features(x, params, model.axes(x, None), token)

    assert torch.equal(features(token), features(torch.zeros_like(token)))
    woken(model)
    assert not torch.allclose(features(token), features(torch.zeros_like(token)), atol=1e-3)


@pytest.mark.parametrize(("kind", "bases"), [("film", "fourier"), ("transport", "cosine")])
def test_it_starts_silent(kind, bases, generator):
    """FiLM starts as the identity; without a Fourier axis there is nothing to transport."""
    x = torch.randn(3, 2, 12, 1, generator=generator, dtype=torch.float64)
    params = torch.randn(3, 1, generator=generator, dtype=torch.float64)
    plain = built("readout", ("wall",), basis=bases)
    silent = built(kind, ("wall",), basis=bases)
    torch.testing.assert_close(silent(x, params), plain(x, params), rtol=1e-13, atol=1e-13)


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
    """Modes are never amplified, all phases occur; scales in [0, 2], shifts in [-1, 1]; other bases are not moved."""
    layer = Conditioning(3, "both", 5, 6, ("fourier", "cosine"), [4, 0, 4])
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=30.0, generator=generator)
        conditions = layer(torch.randn(50, 3, generator=generator))
    assert [len(each.factors) for each in conditions] == [2, 0, 2]
    for each in (conditions[0], conditions[2]):
        waves, none = each.factors
        assert none is None
        assert waves.shape == (4, 2, 6, 50)
        size = waves.norm(dim=1)
        assert float(size.max()) <= 1 + 1e-6
        assert float((size[0] - 1).abs().max()) < 1e-6
        assert float(size[-1].min()) < 1.01 * math.exp(-STRONGEST)
        assert float(torch.atan2(waves[:, 1], waves[:, 0]).abs().max()) > 3.0
        assert 0.0 <= float(each.scale.min()) < 0.01
        assert 1.99 < float(each.scale.max()) <= 2.0
        assert 0.99 < float(each.shift.abs().max()) <= 1.0


def test_transport_solves_the_advection_diffusion_equation(generator):
    """The factors move a field by s and damp it as u_t + s u_x = d u_xx does in unit time."""
    numbers = torch.randn(2, 6, 2, generator=generator, dtype=torch.float64)
    shift = FARTHEST * numbers[0].tanh()
    damping = STRONGEST / 2 * (1 + (numbers[1] + FAINT).tanh())
    modes = torch.randn(4, 6, 2, generator=generator, dtype=torch.complex128)
    factors = torch.view_as_complex(transported(numbers / GAIN, 4).movedim(1, -1).contiguous())
    wave = torch.arange(4, dtype=torch.float64)[:, None, None]
    rate = -2j * math.pi * wave * shift - damping * (wave / 3) ** 2
    assert (factors * modes - torch.exp(rate) * modes).abs().max() < 1e-12


def test_the_fused_gradients_are_those_of_the_plain_form(generator):
    """Also for several layers and axes, and of second order."""
    numbers = torch.randn(3, 2, 2, 5, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    slope = torch.randn(3, 2, 7, 2, 5, 4, generator=generator, dtype=torch.float64)
    outcomes = []
    for function in (transported, plain_transported):
        out = function(numbers, 7)
        (once,) = torch.autograd.grad(out, numbers, slope, create_graph=True)
        (twice,) = torch.autograd.grad(once.square().sum(), numbers, retain_graph=True)
        outcomes.append((out, *torch.autograd.grad(out, numbers, slope), twice))
    for found, expected in zip(*outcomes, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_a_shift_moves_a_field(generator):
    """Mode k turned by 2 pi k s is the field moved by s, by another length in each channel."""
    model = built("transport", num_layers=1)
    axial = model.trunk.fine.blocks[0].axial
    field = torch.randn(6, 2, 32, generator=generator, dtype=torch.float64)
    axes = model.axes(torch.zeros(1, 1, 32, 1), None)
    angle = -2 * math.pi * torch.arange(4, dtype=torch.float64)[:, None, None] * torch.arange(6)[:, None] / 32
    factor = torch.stack([angle.cos(), angle.sin()], dim=1).expand(-1, -1, -1, 2)
    moved = torch.stack([channel.roll(cells, 1) for cells, channel in enumerate(field)])
    assert (axial(field, axes, [factor]) - axial(moved, axes)).abs().max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_one_operator_on_all_grids(kind):
    model = woken(built(kind, ("outflow",), pool="mean"))
    params, outputs = torch.ones(1, 1, dtype=torch.float64), []
    for cells in (32, 64, 128, 256):
        x = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
        history = torch.stack([torch.sin(math.pi * x), torch.cos(3 * x)])[None, ..., None]
        with torch.no_grad():
            outputs.append(model(history, params).view(32, -1).mean(1))
    changes = [float((fine - coarse).abs().max()) for coarse, fine in pairwise(outputs)]
    assert changes[1] < 0.35 * changes[0]
    assert changes[2] < 0.35 * changes[1]
