"""FNO against neuraloperator's, weights carried over (needs the extra `bench`)."""

from __future__ import annotations

import warnings

import pytest
import torch

import spectrakan as sk
from spectrakan.nn.axis import axes_of
from spectrakan.nn.joint_spectral import FourierLayer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("neuralop", reason="neuraloperator is part of the extra `bench`")
    from neuralop.layers.spectral_convolution import SpectralConv
    from neuralop.models import FNO

WIDTH, MODES = 6, 4


def modes_of(dims: int) -> tuple[int, ...]:
    """neuraloperator counts both signs along every axis, and one more than half along the last."""
    return (*[2 * MODES] * (dims - 1), 2 * (MODES - 1))


def carried(weight: torch.Tensor) -> torch.Tensor:
    """Ours, 0..m-1, -m..-1 along leading axes and (.., in, out, 2), as theirs: -m..m-1 and (in, out, ..) complex."""
    value = torch.view_as_complex(weight.detach()).clone()
    for axis in range(value.ndim - 3):
        value = value.roll(MODES, dims=axis)
    return value.movedim((-2, -1), (0, 1)).contiguous()


class EverySecondTime:
    """GELU on calls 1, 3, 5, ..: without channel networks, neuraloperator 2.0.0 applies it twice after a layer."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, field: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.nn.functional.gelu(field) if self.calls % 2 else field


# Leading sizes are even (neuraloperator 2.0.0 shifts an odd spectrum back by one place too many) and above 2m
# (it keeps the wave that changes sign from cell to cell, which no finer grid has).
@pytest.mark.parametrize("size", [(16,), (17,), (16, 12), (12, 15), (10, 12, 11)], ids=str)
def test_the_spectral_layer_is_neuraloperator_s(size):
    torch.manual_seed(0)
    ours = FourierLayer(WIDTH, MODES, ["fourier"] * len(size))
    theirs = SpectralConv(WIDTH, WIDTH, modes_of(len(size)))
    with torch.no_grad():
        ours.pointwise.weight.zero_()
        theirs.weight.tensor.copy_(carried(ours.weight))
        theirs.bias.copy_(ours.pointwise.bias.view(theirs.bias.shape))
    field = torch.randn(3, WIDTH, *size)
    expected = theirs(field)
    found = ours(field.transpose(0, 1).contiguous(), axes_of(size, None, [True] * len(size))).transpose(0, 1)
    assert float(expected.detach().std()) > 0.1
    assert float((found - expected).detach().abs().max()) < 1e-5


@pytest.mark.parametrize("size", [(16,), (16, 12), (10, 12, 9)], ids=str)
def test_the_whole_operator_is_neuraloperator_s(size):
    """Without its channel networks, its embedding (coordinates are given as channels) and our padding."""
    torch.manual_seed(0)
    dims = len(size)
    facts = sk.OperatorSignature(space_dims=dims, history=2, in_channels=1, out_channels=1)
    plain = {"predict": "direct", "noise_level": 0.0}
    ours = sk.build_model("fno", facts, width=WIDTH, num_modes=MODES, padding=0, readout_width=12, **plain)
    theirs = FNO(
        modes_of(dims), 2 + dims, 1, WIDTH, lifting_channel_ratio=0, projection_channel_ratio=2,
        positional_embedding=None, use_channel_mlp=False, fno_skip="linear", non_linearity=EverySecondTime(),
    )  # fmt: skip
    blocks = theirs.fno_blocks
    pairs = [(theirs.lifting.fcs[0], ours.lift)]
    pairs += [(theirs.projection.fcs[0], ours.readout.local), (theirs.projection.fcs[1], ours.readout.out)]
    with torch.no_grad():
        for there, here in pairs:
            there.weight.copy_(here.weight.view(there.weight.shape))
            there.bias.copy_(here.bias)
        for number, layer in enumerate(ours.layers):
            blocks.convs[number].weight.tensor.copy_(carried(layer.weight))
            blocks.convs[number].bias.copy_(layer.pointwise.bias.view(blocks.convs[number].bias.shape))
            skip = blocks.fno_skips[number].conv
            skip.weight.copy_(layer.pointwise.weight.view(skip.weight.shape))
    x = torch.randn(3, 2, *size, 1)
    centres = torch.meshgrid(*[(torch.arange(n) + 0.5) / n for n in size], indexing="ij")
    places = torch.stack(centres).expand(3, dims, *size)
    with torch.no_grad():
        expected = theirs(torch.cat([x[..., 0], places], dim=1))
        found = ours(x)
    assert float(expected.std()) > 1e-3
    assert float((found[..., 0] - expected[:, 0]).abs().max()) < 1e-5
