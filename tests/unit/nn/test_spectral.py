"""The spectral layers against transforms written as in a textbook."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.nn.axis import Axis, axes_of, axis_transform, uniform_axis
from spectrakan.nn.block import Block, BlockSettings
from spectrakan.nn.joint_spectral import FourierLayer
from spectrakan.nn.pointwise import pointwise
from spectrakan.nn.products import analyse, analysis, synthesis, synthesise
from spectrakan.nn.spectral import AxialSpectral, ModeMixing

WIDTH, MODES, BATCH = 3, 4, 2
SIZES = [(9,), (16,), (5,), (8, 9), (7, 6), (4, 12), (6, 5, 8), (4, 7, 5)]


def field_of(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(WIDTH, BATCH, *size, dtype=torch.float64, generator=generator, requires_grad=True)


def axes_for(size: tuple[int, ...]) -> tuple[Axis, ...]:
    return axes_of(size, None, [True] * len(size))


def randomised(layer: torch.nn.Module, generator: torch.Generator) -> torch.nn.Module:
    layer = layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return layer


def by_complex_fft(layer: AxialSpectral, field: Tensor) -> Tensor:
    """sum_a irfft_a( gamma_a(k) W_a(k) rfft_a(v) ) with complex numbers, mode by mode."""
    total = torch.zeros_like(field)
    for axis, mixing in enumerate(layer.mixing):
        assert isinstance(mixing, ModeMixing)
        cells = field.shape[axis + 2]
        spectrum = torch.fft.rfft(field, dim=axis + 2, norm="forward")
        kept = min(layer.num_modes, -(-cells // 2))
        out = torch.zeros_like(spectrum)
        weight = torch.view_as_complex(mixing.weight)
        for k in range(kept):
            gate = 1.0 if mixing.gate is None else mixing.gate[k]
            mode = spectrum.select(axis + 2, k)
            out.select(axis + 2, k).add_(gate * torch.einsum("io,i...->o...", weight[k], mode))
        total = total + torch.fft.irfft(out, n=cells, dim=axis + 2, norm="forward")
    return total


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_axial_layer_is_the_complex_fft_layer(size, generator):
    layer = randomised(AxialSpectral(WIDTH, MODES, ["fourier"] * len(size)), generator)
    field = field_of(size, generator)
    probe = torch.randn(field.shape, dtype=torch.float64, generator=generator)
    results = []
    for output in (layer(field, axes_for(size)), by_complex_fft(layer, field)):
        gradients = torch.autograd.grad((output * probe).sum(), [field, *layer.parameters()])
        results.append((output, *gradients))
    for fast, plain in zip(*results, strict=True):
        assert (fast - plain).abs().max() < 1e-10


@pytest.mark.parametrize("size", [(12,), (9, 8), (5, 6, 7)], ids=str)
def test_axial_layer_commutes_with_translations(size, generator):
    layer = randomised(AxialSpectral(WIDTH, MODES, ["fourier"] * len(size)), generator)
    field = field_of(size, generator).detach()
    dims = tuple(range(2, 2 + len(size)))
    shifts = tuple(range(1, 1 + len(size)))
    moved = layer(field.roll(shifts, dims), axes_for(size))
    assert (moved - layer(field, axes_for(size)).roll(shifts, dims)).abs().max() < 1e-12


def test_a_gate_acts_on_its_own_mode_alone(generator):
    cells, k = 32, 3
    layer = randomised(AxialSpectral(1, 6, ["fourier"]), generator)
    x = uniform_axis(cells, True).centres
    waves = {mode: torch.cos(2 * np.pi * mode * x).view(1, 1, -1) for mode in range(6)}
    before = {mode: layer(wave, axes_for((cells,))) for mode, wave in waves.items()}
    with torch.no_grad():
        layer.mixing[0].gate[k] *= 2.5
    for mode, wave in waves.items():
        factor = 2.5 if mode == k else 1.0
        assert (layer(wave, axes_for((cells,))) - factor * before[mode]).abs().max() < 1e-12


def test_modes_beyond_what_cells_resolve_are_left_out(generator):
    """Sizes below twice the modes still work, and the Nyquist mode of an even size is never used."""
    layer = randomised(AxialSpectral(WIDTH, 12, ["fourier"]), generator)
    nyquist = torch.tensor([1.0, -1.0] * 4, dtype=torch.float64).expand(WIDTH, BATCH, 8)
    assert layer(nyquist, axes_for((8,))).abs().max() < 1e-12


@pytest.mark.parametrize("cells", [5, 8, 31])
def test_cosine_basis_is_the_discrete_cosine_transform(cells, generator):
    layer = randomised(AxialSpectral(1, 4, ["cosine"]), generator)
    field = torch.randn(1, 1, cells, dtype=torch.float64, generator=generator)
    spectrum = scipy.fft.dct(field[0, 0].numpy(), type=2, norm="ortho")
    mixing = layer.mixing[0]
    factors = (mixing.gate * mixing.weight[:, 0, 0]).detach().numpy()
    kept = min(8, cells)
    spectrum = np.concatenate([spectrum[:kept] * factors[:kept], np.zeros(cells - kept)])
    expected = scipy.fft.idct(spectrum, type=2, norm="ortho")
    assert np.abs(layer(field, axes_for((cells,)))[0, 0].detach().numpy() - expected).max() < 1e-12


@pytest.mark.parametrize("cells", [5, 8, 31])
def test_sine_basis_is_the_discrete_sine_transform(cells, generator):
    layer = randomised(AxialSpectral(1, 4, ["sine"]), generator)
    field = torch.randn(1, 1, cells, dtype=torch.float64, generator=generator)
    spectrum = scipy.fft.dst(field[0, 0].numpy(), type=2, norm="ortho")
    mixing = layer.mixing[0]
    factors = (mixing.gate * mixing.weight[:, 0, 0]).detach().numpy()
    kept = min(8, cells - 1)
    spectrum = np.concatenate([spectrum[:kept] * factors[:kept], np.zeros(cells - kept)])
    expected = scipy.fft.idst(spectrum, type=2, norm="ortho")
    assert np.abs(layer(field, axes_for((cells,)))[0, 0].detach().numpy() - expected).max() < 1e-12


@pytest.mark.parametrize("cells", [8, 16, 24])
def test_extended_basis_is_the_fft_of_the_padded_field(cells, generator):
    layer = randomised(AxialSpectral(WIDTH, MODES, ["extended"]), generator)
    field = field_of((cells,), generator)
    padded = torch.cat([field, torch.zeros_like(field[..., : cells // 8])], dim=2)
    expected = by_complex_fft(layer, padded)[..., :cells]
    assert (layer(field, axes_for((cells,))) - expected).abs().max() < 1e-12


@pytest.mark.parametrize("basis", ["fourier", "cosine", "sine", "extended"])
def test_low_modes_of_every_basis_keep_their_meaning_under_refinement(basis, generator):
    """The same weights on a smooth field: four times the cells changes the layer's output by O(h²)."""
    layer = randomised(AxialSpectral(1, 6, [basis]), generator)
    errors = []
    for cells in (64, 256):
        outputs = []
        for size in (cells, 4096):
            x = uniform_axis(size, False).centres
            field = (torch.sin(np.pi * x) * torch.exp(x)).view(1, 1, -1)
            outputs.append(layer(field, axes_for((size,)))[0, 0])
        coarse, fine = outputs
        errors.append((coarse - fine.view(cells, -1).mean(1)).abs().max().item())
    assert np.log(errors[0] / errors[1]) / np.log(4) > 1.9


@pytest.mark.parametrize(
    "bases", [["fourier", "extended"], ["extended", "fourier"], ["extended", "extended"]], ids=str
)
def test_joint_layer_of_ones_projects_along_each_axis(bases, generator):
    """W = 1 in every mode but the unpaired one: a projection along one axis, then along the other."""
    size = (10, 9)
    layer = FourierLayer(1, 3, bases, pointwise=False).double()
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[..., 0, 0, 0].fill_(1.0)
        layer.weight[3].zero_()  # k = -3, which has no mirror image
    field = torch.randn(1, BATCH, *size, dtype=torch.float64, generator=generator)
    expected = field
    for axis, basis in enumerate(bases):
        transform = axis_transform(uniform_axis(size[axis], True), basis, 3, field)
        rows = analysis(expected, transform.analysis, axis)
        expected = synthesis(rows, transform.synthesis, axis)
    assert (layer(field, axes_for(size)) - expected).abs().max() < 1e-12


def test_joint_layers_refuse_bases_without_phases():
    with pytest.raises(ConfigError, match="complex coefficients, got fourier, cosine"):
        FourierLayer(1, 3, ["fourier", "cosine"])


@pytest.mark.parametrize("size", [(7,), (4, 5), (2, 3, 4)], ids=str)
def test_gathered_products_are_the_plain_ones_and_their_gradients_too(size, generator):
    field = field_of(size, generator)
    layer = torch.nn.Linear(WIDTH, 4).double()
    weight, bias = layer.weight, layer.bias
    matrices = [torch.randn(3, cells, dtype=torch.float64, generator=generator) for cells in size]
    product, *rows = analyse(field, layer, *matrices)
    expected = torch.einsum("oc,cb...->ob...", weight, field) + bias.view(-1, 1, *[1] * len(size))
    assert torch.allclose(product, expected, atol=1e-12)
    for axis, (row, matrix) in enumerate(zip(rows, matrices, strict=True)):
        assert torch.allclose(row, analysis(field, matrix, axis), atol=1e-12)

    def whole(field, weight, bias):
        layer = torch.nn.Linear(WIDTH, 4)
        del layer.weight, layer.bias
        layer.weight, layer.bias = weight, bias
        start, *rows = analyse(field, layer, *matrices)
        rows = [torch.einsum("oc,rcb...->rob...", weight, row).tanh() for row in rows]
        return synthesise(start, rows, [matrix.T.contiguous() for matrix in matrices])

    assert torch.autograd.gradcheck(whole, (field, weight, bias), fast_mode=True)
    assert torch.autograd.gradgradcheck(whole, (field, weight, bias), fast_mode=True)


@pytest.mark.parametrize("kind", ["plain", "skip", "residual"])
@pytest.mark.parametrize("size", [(9,), (8, 7), (4, 5, 6)], ids=str)
def test_the_fused_block_is_the_block_on_paper(kind, size, generator):
    config = BlockSettings(width=WIDTH, num_modes=3, bases=("fourier", "cosine", "fourier")[: len(size)], kind=kind)
    block = randomised(Block(config), generator)
    field, axes = field_of(size, generator), axes_for(size)
    factors = [
        torch.randn(3, 2, WIDTH, BATCH, dtype=torch.float64, generator=generator) if basis == "fourier" else None
        for basis in config.bases
    ]
    fused = block._combined(field, axes, factors)
    plain = block.axial(field, axes, factors)
    if block.squeeze_excite is not None:
        scale = block.squeeze_excite(plain.flatten(2).mean(2).T).T
        plain = plain * scale.view(*scale.shape, *[1] * len(size))
    if block.pointwise is not None:
        plain = plain + pointwise(block.pointwise.weight, block.pointwise.bias, field)
    assert (fused - plain).abs().max() < 1e-11
    probe = torch.randn(fused.shape, dtype=torch.float64, generator=generator)
    ours = torch.autograd.grad((fused * probe).sum(), field)[0]
    theirs = torch.autograd.grad((plain * probe).sum(), field)[0]
    assert (ours - theirs).abs().max() < 1e-10


def test_a_factor_multiplies_its_own_mode_of_its_own_channel_and_sample_as_a_complex_number(generator):
    """Against complex multiplication of the spectrum; the constant mode of a real field has a real factor."""
    cells, modes = 16, 4
    layer = randomised(AxialSpectral(WIDTH, modes, ["fourier"]), generator)
    field = field_of((cells,), generator).detach()
    factor = torch.randn(modes, 2, WIDTH, BATCH, dtype=torch.float64, generator=generator)
    factor[0, 1] = 0
    spectrum = torch.fft.rfft(field, dim=2, norm="forward")
    spectrum[..., :modes] *= torch.view_as_complex(factor.permute(2, 3, 0, 1).contiguous())
    expected = layer(torch.fft.irfft(spectrum, n=cells, dim=2, norm="forward"), axes_for((cells,)))
    assert (layer(field, axes_for((cells,)), [factor]) - expected).abs().max() < 1e-12
