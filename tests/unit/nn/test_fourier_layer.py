"""The FNO layer against complex fast transforms, mode by mode."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from spectrakan.nn.axis import Axis, axes_of, padded_axis, uniform_axis
from spectrakan.nn.joint_spectral import FourierLayer

WIDTH, MODES, BATCH = 3, 3, 2
SIZES = [(9,), (16,), (6,), (5,), (4,), (8, 9), (6, 6), (5, 4), (7, 12), (4, 4), (8, 7, 9), (6, 5, 4)]


def randomised(layer: torch.nn.Module, generator: torch.Generator) -> torch.nn.Module:
    layer = layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return layer


def by_fast_transform(layer: FourierLayer, field: torch.Tensor) -> torch.Tensor:
    """irfftn( W(k) rfftn(v)(k) ) + P v + b by loops over k, each stored by its place in 0..m-1, -m..-1."""
    size = field.shape[2:]
    dims = tuple(range(2, field.ndim))
    spectrum = torch.fft.rfftn(field, dim=dims)
    weight = torch.view_as_complex(layer.weight)
    out = torch.zeros_like(spectrum)
    m = layer.num_modes
    for ks in itertools.product(*[range(-m, m)] * (len(size) - 1), range(m)):
        if all(2 * abs(k) < cells for k, cells in zip(ks, size, strict=True)):
            place = (slice(None), slice(None), *ks)
            out[place] = torch.einsum("io,ib->ob", weight[ks], spectrum[place])
    spectral = torch.fft.irfftn(out, s=size, dim=dims)
    if layer.pointwise is None:
        return spectral
    pointwise = torch.einsum("oi,ib...->ob...", layer.pointwise.weight, field)
    return spectral + pointwise + layer.pointwise.bias.view(-1, 1, *[1] * len(size))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("skips", [True, False])
def test_layer_is_the_fast_transform_layer_with_the_same_gradients(size, skips, generator):
    layer = randomised(FourierLayer(WIDTH, MODES, ["fourier"] * len(size), pointwise=skips), generator)
    field = torch.randn(WIDTH, BATCH, *size, dtype=torch.float64, generator=generator, requires_grad=True)
    ours, theirs = layer(field, axes_of(size, None, [True] * len(size))), by_fast_transform(layer, field)
    assert (ours - theirs).abs().max() < 1e-11
    probe = torch.randn(ours.shape, dtype=torch.float64, generator=generator)
    wanted = [field, *layer.parameters()]
    for found, expected in zip(
        torch.autograd.grad((ours * probe).sum(), wanted),
        torch.autograd.grad((theirs * probe).sum(), wanted),
        strict=True,
    ):
        assert (found - expected).abs().max() < 1e-10


def test_unequal_cells_are_integrated_by_their_widths(generator):
    """On stretched cells a low mode is still itself: the projection on it converges to the exact coefficient."""
    layer = FourierLayer(1, 3, ["fourier"]).double()
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[2, 0, 0, 0] = 1.0
        layer.pointwise.weight.zero_()
        layer.pointwise.bias.zero_()
    errors = []
    for cells in (64, 128):
        place = torch.linspace(0, 1, cells + 1, dtype=torch.float64)
        edges = place + 0.1 * torch.sin(2 * np.pi * place) / (2 * np.pi)
        centres = (edges[1:] + edges[:-1]) / 2
        axis = Axis(centres, edges, edges.diff(), periodic=True, uniform=False)
        wave = torch.cos(4 * np.pi * centres)
        field = (wave + torch.sin(2 * np.pi * centres) + 0.5).view(1, 1, -1)
        errors.append((layer(field, (axis,))[0, 0] - wave).abs().max().item())
    assert np.log2(errors[0] / errors[1]) > 1.9


def test_padding_adds_cells_as_wide_as_the_last():
    assert padded_axis(uniform_axis(6, False), 2) is uniform_axis(8, False)
    edges = torch.tensor([0.0, 0.5, 0.75, 1.0], dtype=torch.float64)
    axis = Axis((edges[1:] + edges[:-1]) / 2, edges, edges.diff(), periodic=False, uniform=False)
    wider = padded_axis(axis, 2)
    assert torch.allclose(wider.edges * 1.5, torch.tensor([0.0, 0.5, 0.75, 1.0, 1.25, 1.5]).double())
    assert torch.allclose(wider.centres, (wider.edges[1:] + wider.edges[:-1]) / 2)
    assert torch.allclose(wider.weights, wider.widths)
