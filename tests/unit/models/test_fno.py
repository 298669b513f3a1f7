"""FNO as PDEBench has it, by plain complex transforms, and its padding on other grids."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import spectrakan as sk


def by_fast_transforms(model: torch.nn.Module, x: torch.Tensor, padding: int) -> torch.Tensor:
    """Lift, pad, four layers with corner blocks of the spectrum, crop, head: channels in the middle, (B, C, H, W)."""
    batch, _, height, width, _ = x.shape
    m = model.config.num_modes
    across = (torch.arange(height, dtype=x.dtype) + 0.5) / height
    along = (torch.arange(width, dtype=x.dtype) + 0.5) / width
    places = torch.stack(torch.meshgrid(across, along, indexing="ij")).expand(batch, 2, height, width)
    v = torch.cat([x.permute(0, 1, 4, 2, 3).flatten(1, 2), places], dim=1)
    v = torch.einsum("oc,bchw->bohw", model.lift.weight, v) + model.lift.bias[:, None, None]
    v = F.pad(v, (0, padding, 0, padding))
    for number, layer in enumerate(model.layers):
        spectrum = torch.fft.rfft2(v)
        weight = torch.view_as_complex(layer.weight)
        out = torch.zeros_like(spectrum)
        out[:, :, :m, :m] = torch.einsum("bixy,xyio->boxy", spectrum[:, :, :m, :m], weight[:m])
        out[:, :, -m:, :m] = torch.einsum("bixy,xyio->boxy", spectrum[:, :, -m:, :m], weight[m:])
        pointwise = torch.einsum("oi,bihw->bohw", layer.pointwise.weight, v) + layer.pointwise.bias[:, None, None]
        v = torch.fft.irfft2(out, s=v.shape[-2:]) + pointwise
        v = F.gelu(v) if number < len(model.layers) - 1 else v
    v = v[..., :height, :width].permute(0, 2, 3, 1)
    readout = model.readout
    return F.linear(
        F.gelu(F.linear(v, readout.local.weight, readout.local.bias)), readout.out.weight, readout.out.bias
    )


@pytest.mark.parametrize("padding", [0, 2])
def test_the_operator_is_pdebench_s(padding):
    torch.manual_seed(0)
    facts = sk.OperatorSignature(space_dims=2, history=3, in_channels=2, out_channels=1)
    model = sk.build_model("fno", facts, width=5, num_modes=4, padding=padding).double()
    x = torch.randn(2, 3, 12, 9, 2, dtype=torch.float64)
    assert (model(x) - by_fast_transforms(model, x, padding)).abs().max() < 1e-12
