"""The U-Net of any size: what the continuation past the far ends does and does not change."""

from __future__ import annotations

import torch

import spectrakan as sk


def built(boundary: tuple[str, ...], **choices) -> torch.nn.Module:
    torch.manual_seed(0)
    facts = sk.OperatorSignature(
        space_dims=len(boundary), history=1, in_channels=1, out_channels=1, boundary=boundary, steady=True
    )
    return sk.build_model("unet", facts, width=4, **choices).double().eval()


def test_a_fitting_size_is_left_alone_and_another_is_continued():
    """The answer on 40 cells is the cropped answer on 48, the last value repeated (or gone round)."""
    for boundary, index in (("wall", [*range(40), *[39] * 8]), ("periodic", [*range(40), *range(8)])):
        model = built((boundary,))
        x = torch.randn(2, 1, 40, 1, dtype=torch.float64)
        assert torch.allclose(model(x), model(x[:, :, index])[:, :40], atol=1e-13)


def test_one_level_is_what_is_written():
    """Down once and up once by the layers' own parts."""
    model = built(("wall", "wall"), num_levels=1)
    x = torch.randn(1, 1, 6, 8, 1, dtype=torch.float64)
    fine = model.encoder[0](x[..., 0])
    coarse = model.encoder[1](torch.nn.functional.max_pool2d(fine, 2))
    expected = model.out(model.decoder[0](torch.cat([model.rise[0](coarse), fine], dim=1)))
    assert torch.allclose(model(x)[..., 0], expected[:, 0], atol=1e-13)


def test_blocks_are_bias_free_convolutions_with_norm_and_tanh():
    block = built(("wall",)).encoder[0]
    kinds = [type(part).__name__ for part in block]
    assert kinds == ["Conv1d", "BatchNorm1d", "Tanh"] * 2
    assert block[0].bias is None
    assert block[3].bias is None
