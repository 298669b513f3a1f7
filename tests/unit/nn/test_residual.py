"""A residual block as one operation against the same in plain operations: values, gradients, second derivatives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from spectrakan.nn import axial, feed_forward
from spectrakan.nn.axis import axis_transforms, uniform_axis
from spectrakan.nn.block import Block, BlockSettings
from spectrakan.nn.conditioning import Condition
from spectrakan.nn.feed_forward import Network
from spectrakan.nn.residual import ResidualBlocks, ResidualLayer, plain_residual, residual_layers
from spectrakan.nn.spectral import AxialSpectral

WIDTH, BATCH, MODES = 4, 3, 3


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def arguments(space: tuple[int, ...], *, gates: bool, conditioned: bool) -> tuple[Tensor, list[object]]:
    """A field and the other arguments of the block; one axis of two bears a factor."""
    torch.manual_seed(len(space))
    samples = BATCH if conditioned else 1
    layer = AxialSpectral(WIDTH, MODES, ("fourier", "extended", "fourier")[: len(space)], gates=gates).double()
    factors = [numbers(MODES, 2, WIDTH, BATCH) if conditioned and axis != 1 else None for axis in range(len(space))]
    for each in layer.parameters():
        torch.nn.init.normal_(each)
    field = numbers(WIDTH, BATCH, *space)
    scale = numbers(5, samples) if conditioned else None
    network = [numbers(5, WIDTH), numbers(5, samples), scale, "gelu", numbers(WIDTH, 5), numbers(WIDTH)]
    axes = [uniform_axis(cells, True) for cells in space]
    parts = layer.parts(axis_transforms(axes, layer.bases, MODES, field), factors)
    return field, [*network, *(each for part in parts for each in part)]


@pytest.mark.parametrize("piece", [4096, 20])
@pytest.mark.parametrize("space", [(16,), (4, 9), (5, 4, 8)], ids=str)
@pytest.mark.parametrize(("gates", "conditioned"), [(False, False), (True, True)])
def test_the_block_has_the_values_and_gradients_of_its_plain_form(
    space: tuple[int, ...], piece: int, gates: bool, conditioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four cells along an axis resolve fewer modes than the layer has; pieces are parts of samples, or samples."""
    monkeypatch.setattr(feed_forward, "PIECE", piece)
    field, given = arguments(space, gates=gates, conditioned=conditioned)
    wanted = [each for each in (field, *given) if isinstance(each, Tensor) and each.requires_grad]
    both = ResidualBlocks.apply(2, field, *given, *given), plain_residual(2, field, *given, *given)
    torch.testing.assert_close(*both, rtol=1e-12, atol=1e-12)
    slope = torch.randn_like(both[0])
    found, expected = (torch.autograd.grad(out, wanted, slope) for out in both)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)
    with torch.no_grad():
        assert torch.equal(ResidualBlocks.forward(None, 1, field, *given), ResidualBlocks.apply(1, field, *given))


@pytest.mark.parametrize("space", [(64,), (16, 32)], ids=str)
def test_threads_change_results_by_rounding_alone_and_not_from_call_to_call(
    space: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More threads take more samples together; the backward pass takes those of the forward pass, whatever came."""
    for module, name in ((axial, "GROUP"), (axial, "NEAR"), (feed_forward, "PIECE")):
        monkeypatch.setattr(module, name, math.prod(space))
    field, given = arguments(space, gates=True, conditioned=True)
    wanted = [each for each in (field, *given) if isinstance(each, Tensor) and each.requires_grad]
    slope, before = torch.randn_like(field), torch.get_num_threads()

    def found(threads: int, later: int) -> list[Tensor]:
        torch.set_num_threads(threads)
        out: Tensor = ResidualBlocks.apply(2, field, *given, *given)
        torch.set_num_threads(later)
        return [out, *torch.autograd.grad(out, wanted, slope)]

    try:
        one, two, again, mixed = found(1, 1), found(2, 2), found(2, 2), found(2, 1)
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, two, again))
    for numbers_of_threads in (two, mixed):
        for ours, theirs in zip(numbers_of_threads, one, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


def test_second_derivatives_of_a_conditioned_block_are_those_of_the_plain_form() -> None:
    """The shift depends on the scale, as in a block: what one passes on must not be counted for the other as well."""
    torch.manual_seed(0)
    config = BlockSettings(width=WIDTH, num_modes=MODES, bases=("fourier",), kind="residual", squeeze_excite="none")
    block, field, axes = Block(config).double(), numbers(WIDTH, BATCH, 8), [uniform_axis(8, True)]
    condition = Condition(numbers(BATCH, 2 * WIDTH), numbers(BATCH, 2 * WIDTH), (numbers(MODES, 2, WIDTH, BATCH),))
    wanted = [field, condition.scale, condition.shift, *condition.factors, *block.parameters()]

    def curvature() -> tuple[Tensor, ...]:
        slopes = torch.autograd.grad(block(field, axes, condition).square().sum(), wanted, create_graph=True)
        return torch.autograd.grad(sum(slope.square().sum() for slope in slopes), wanted)

    found = curvature()
    with torch.overrides.BaseTorchFunctionMode():  # takes plain forms
        expected = curvature()
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_kept_matrices_follow_the_weights_however_they_are_changed() -> None:
    layer = AxialSpectral(WIDTH, MODES, ["fourier"]).double()
    field, axes = numbers(WIDTH, BATCH, 8), [uniform_axis(8, True)]
    weight, gate = layer.mixing[0].weight, layer.mixing[0].gate
    network = Network(numbers(5, WIDTH), numbers(5, 1), None, "gelu", numbers(WIDTH, 5), numbers(WIDTH))

    def both() -> tuple[Tensor, Tensor]:
        found = residual_layers(field, axes, [ResidualLayer(layer, (), network)])
        return found, plain_residual(
            1, field, *network, *layer.parts(axis_transforms(axes, layer.bases, MODES, field))[0]
        )

    with torch.no_grad():
        before = both()
        weight.data[0, 0, 0, 0] += 1.0  # which no version of the parameter counts
        first = both()
        gate.data.mul_(2.0)
        second = both()
    assert (first[0] - before[0]).abs().max() > 0.1 < (second[0] - first[0]).abs().max()
    for found, expected in (before, first, second):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
