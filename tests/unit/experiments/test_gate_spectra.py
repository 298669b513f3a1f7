"""Spectra of the gates: the weights' by a loop, the data's by Parseval, and directions that were planted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.gate_spectra import axis_shares, gate_spectra, used_spectra
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature
from spectrakan.models import build_model

SMALL = {
    "width": 4,
    "num_modes": 3,
    "num_layers": 2,
    "coarse_num_modes": 2,
    "coarse_num_layers": 1,
    "conditioning": "readout",
}
AXIAL = {"coarse_mixing": "axial", "basis": "fourier"}


def model_of(dims: int = 2, name: str = "spectrakan", **config):
    signature = OperatorSignature(space_dims=dims, history=1, in_channels=1, out_channels=1)
    torch.manual_seed(0)
    model = build_model(name, signature, **{**SMALL, **AXIAL, **config})
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # gates among them, which all start at one
                parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


@pytest.mark.parametrize("basis", ["fourier", "cosine"])
@pytest.mark.parametrize("gates", [True, False])
def test_strength_is_gate_times_largest_singular_value(basis, gates):
    model = model_of(basis=basis, gates=gates)
    expected = []
    for branch, blocks in (("fine", model.trunk.fine.blocks), ("coarse", model.trunk.coarse.blocks)):
        for layer, block in enumerate(blocks):
            for axis, mixing in enumerate(block.axial.mixing):
                weight = mixing.weight.detach().double().numpy()
                numbers = []
                for k in range(len(weight)):
                    matrix = weight[k, ..., 0] + 1j * weight[k, ..., 1] if basis == "fourier" else weight[k]
                    gamma = abs(float(mixing.gate.detach()[k])) if gates else 1.0
                    numbers.append(gamma * np.linalg.svd(matrix, compute_uv=False)[0])
                expected.append((branch, layer, axis, numbers))
    found = gate_spectra(model)
    assert [(one.branch, one.layer, one.axis) for one in found] == [place[:3] for place in expected]
    for one, (*_, numbers) in zip(found, expected, strict=True):
        assert np.allclose(one.strength.numpy(), numbers, rtol=1e-6)
    wanted = [0, 1, 2] if basis == "fourier" else [0, 0.5, 1, 1.5, 2, 2.5]
    assert found[0].frequencies.tolist() == wanted


@pytest.mark.parametrize("basis", ["fourier", "cosine", "sine"])
def test_powers_add_up_to_the_mean_square_of_what_the_layer_gives(basis, generator):
    model = model_of(dims=1, basis=basis, squeeze_excite="none", block="plain", coarse_num_layers=0).double()
    x = torch.randn(3, 1, 16, 1, generator=generator, dtype=torch.float64)
    given: list[torch.Tensor] = []
    for block in model.trunk.fine.blocks:
        block.register_forward_hook(lambda part, inputs, output: given.append(output.detach().clone()))
    spectra = used_spectra(model, x)
    for spectrum, field in zip(spectra, given, strict=True):
        assert float(spectrum.power.sum()) == pytest.approx(float(field.square().mean()), rel=1e-9)


def test_modes_that_the_grid_does_not_have_carry_nothing(generator):
    model = model_of(dims=1, coarse_num_layers=0, name="amfno")
    (spectrum, *_) = used_spectra(model, torch.randn(2, 1, 4, 1, generator=generator))
    assert spectrum.power[:2].min() > 0
    assert spectrum.power[2:].tolist() == [0.0]


def test_the_direction_that_is_used_is_told(generator):
    """Gates along the second axis are shut but for one mode: all goes along the first, and that mode is seen."""
    model = model_of(coarse_num_layers=0)
    with torch.no_grad():
        for block in model.trunk.fine.blocks:
            block.axial.mixing[1].gate.zero_()
        model.trunk.fine.blocks[0].axial.mixing[1].gate[2] = 5.0
    x = torch.randn(2, 1, 12, 12, 1, generator=generator)
    for spectra in (gate_spectra(model), used_spectra(model, x)):
        shares = axis_shares(spectra)
        assert shares[("fine", 1)].tolist() == pytest.approx([1.0, 0.0])
        assert 0 < shares[("fine", 0)][1] < 1
        second = next(one for one in spectra if (one.layer, one.axis) == (0, 1))
        amount = second.strength if second.power is None else second.power
        assert int(amount.argmax()) == 2
        assert amount[:2].sum() == 0


def test_listening_leaves_no_trace(generator):
    model = model_of(coarse_num_layers=0)
    x = torch.randn(2, 1, 12, 12, 1, generator=generator)
    before = model(x)
    used_spectra(model, x)
    assert torch.equal(model(x), before)
    assert not any(part._forward_hooks for part in model.modules())


def test_models_without_axial_layers_are_refused():
    with pytest.raises(ConfigError, match="gated trunk"):
        gate_spectra(build_model("fno", OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)))
