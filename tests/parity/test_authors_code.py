"""Baselines against golden values of the authors' codes (`tools/make_golden.py`), with the same weights.

Where a baseline departs on purpose (docs/baselines.md), the part that should agree is compared, and the test says
what is put back to make it theirs.
"""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import BaseTorchFunctionMode

import spectrakan as sk
from spectrakan.models import lno, transolver
from spectrakan.models.transolver import UNIT_VARIANCE
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import channels_first, with_coordinates
from tools.make_golden import sequence, stable_poles, weights

PLAIN = {"predict": "direct", "noise_level": 0.0}


def golden(name, case):
    """Settings, weights and outputs of a case."""
    content = json.loads((Path(__file__).parent / "golden" / f"{name}.json").read_text())["cases"][case]
    outputs = {
        key: torch.tensor(each["values"], dtype=torch.float64).view(each["shape"])
        for key, each in content["outputs"].items()
    }
    return content.get("settings", {}), weights(content["weights"]), outputs


def given(*shape):
    return torch.from_numpy(sequence(0, shape))


def agree(found, expected, tolerance=1e-5):
    expected = expected.double()
    assert found.shape == expected.shape
    assert float(expected.std()) > 1e-3 * float(expected.abs().max())
    difference = float((found.detach().double() - expected).abs().max() / expected.abs().max())
    assert difference < tolerance, difference


def put(parameter, values):
    with torch.no_grad():
        parameter.copy_(values.reshape(parameter.shape))


def signature(dims, history=2, **more):
    return sk.OperatorSignature(space_dims=dims, history=history, in_channels=1, out_channels=1, **more)


@pytest.mark.parametrize("case", ["shared", "unshared"])
def test_ffno_has_the_authors_layers(case):
    """Put back: the head reads the last branch instead of the sum, and has no nonlinearity."""
    settings, theirs, outputs = golden("ffno", case)
    shared = case == "shared"
    ours = sk.build_model(
        "ffno", signature(2), width=settings["width"], num_modes=settings["modes"], num_layers=settings["n_layers"],
        mlp_ratio=settings["factor"], share_weights=shared, weight_norm=shared, **PLAIN,
    ).double()  # fmt: skip

    def carry(layer, name):
        put(layer.bias, theirs[f"{name}.bias"])
        if shared:
            put(layer.parametrizations.weight.original0, theirs[f"{name}.weight_g"])
            put(layer.parametrizations.weight.original1, theirs[f"{name}.weight_v"])
        else:
            put(layer.weight, theirs[f"{name}.weight"])

    carry(ours.lift, "in_proj")
    for number, spectral in enumerate(ours.spectral):
        place = "" if shared else f"spectral_layers.{number}."
        for axis, mixing in enumerate(spectral.mixing):  # their first set of weights is that of the last axis
            put(mixing.weight, theirs[f"{place}fourier_weight.{1 - axis}"].permute(2, 0, 1, 3))
    for number, feed_forward in enumerate(ours.feed_forward):
        for part, layer in enumerate((feed_forward[0], feed_forward[2])):
            carry(layer, f"spectral_layers.{number}.backcast_ff.layers.{part}.0")
    mixed = []
    ours.spectral[-1].register_forward_hook(lambda module, inputs, output: mixed.append(output))
    x = given(2, 9, 12, 2).movedim(-1, 1)[..., None]
    axes = ours.axes(x, None)
    lifted = ours.lift(with_coordinates(channels_first(x), axes))
    agree(ours.features(lifted, axes).movedim(0, -1)[:1, ::2, ::3], outputs["features"], 1e-8)
    with BaseTorchFunctionMode():  # watched layers are not fused: their hooks are called
        ours.features(lifted, axes)

    def linear(name, field):
        weight = theirs[f"{name}.weight_v" if shared else f"{name}.weight"]
        if shared:
            weight = weight * theirs[f"{name}.weight_g"] / weight.norm(dim=1, keepdim=True)
        return F.linear(field, weight, theirs[f"{name}.bias"])

    branch = ours.feed_forward[-1](mixed[-1])
    found = linear("out.1", linear("out.0", branch.movedim(0, -1)))[..., 0]
    agree(found, outputs["output"], 1e-7)


def sampled_axis(cells):
    """LNO's samples lie at 0, h, 2 h, ..; ours in the middles of cells."""
    edges = torch.arange(cells + 1, dtype=torch.float64) / cells
    return Axis(edges[:-1], edges, torch.full((cells,), 1 / cells, dtype=torch.float64), True, uniform=True)


def carry_poles(systems, poles, residues):
    put(systems.residues, residues)
    for parameter, values in zip(systems.poles, poles, strict=True):
        pole = stable_poles(values)
        raw = torch.expm1(-pole.real - lno.MIN_DECAY).log()
        put(parameter, torch.stack([raw, pole.imag], dim=-1))


def parts_of(systems, field, axes, keys):
    """The sum of some of the 2^d parts of the response."""
    some = copy.deepcopy(systems)
    some._part = lambda *given: systems._part(*given) * (given[-1] in keys)
    return some(field, axes)


def test_lno_of_one_channel_is_the_authors_network():
    """With one channel nothing is contracted twice; their poles are given a negative real part."""
    _, theirs, outputs = golden("lno", "line")
    ours = sk.build_model("lno", signature(1, history=1), width=1, num_modes=4, **PLAIN).double()
    carry_poles(ours.layers[0].systems, [theirs["conv0.weights_pole"]], theirs["conv0.weights_residue"])
    pairs = {"fc0": ours.lift, "w0": ours.layers[0].pointwise, "fc1": ours.hidden, "fc2": ours.out}
    for name, layer in pairs.items():
        put(layer.weight, theirs[f"{name}.weight"])
        put(layer.bias, theirs[f"{name}.bias"])
    found = ours._forward(given(2, 15, 1)[:, None], None, [sampled_axis(15)])
    agree(found, outputs["output"])


@pytest.mark.parametrize(("case", "cells"), [("line_steady", (15,)), ("plane_steady", (7, 9))])
def test_lno_has_the_authors_steady_part(case, cells):
    _, theirs, outputs = golden("lno", case)
    poles = [value for name, value in theirs.items() if "pole" in name]
    width, modes = poles[0].shape[0], poles[0].shape[2]
    systems = lno.PoleResidue(width, modes, len(cells)).double()
    carry_poles(systems, poles, theirs["weights_residue"])
    axes = [sampled_axis(count) for count in cells]
    found = parts_of(systems, given(2, width, *cells).transpose(0, 1), axes, {(False,) * len(cells)})
    agree(found.transpose(0, 1), outputs["output"])


def test_lno_in_2d_adds_the_products_that_the_authors_leave_out():
    """Theirs is steady x steady plus transient x transient; the mixed products are a large part of the response."""
    _, theirs, outputs = golden("lno", "plane")
    systems = lno.PoleResidue(1, 3, 2).double()
    carry_poles(systems, [theirs["weights_pole1"], theirs["weights_pole2"]], theirs["weights_residue"])
    axes, field = [sampled_axis(7), sampled_axis(9)], given(2, 1, 7, 9).transpose(0, 1)
    agree(parts_of(systems, field, axes, {(False, False), (True, True)}).transpose(0, 1), outputs["output"])
    whole = systems(field, axes).transpose(0, 1)
    assert float((whole - outputs["output"]).detach().norm() / whole.detach().norm()) > 0.1


def test_transolver_is_the_authors_for_irregular_meshes(monkeypatch):
    """Coordinates at zero mean and unit variance are a change of weights; the floor of a slice is set to theirs."""
    monkeypatch.setattr(transolver, "SMALLEST_SHARE", 1e-5 / 30)
    settings, theirs, outputs = golden("transolver", "irregular")
    width, heads = settings["n_hidden"], settings["n_head"]
    ours = sk.build_model(
        "transolver", signature(2), width=width, num_layers=settings["n_layers"], num_heads=heads,
        num_slices=settings["slice_num"], mlp_ratio=settings["mlp_ratio"], **PLAIN,
    ).double()  # fmt: skip
    first = theirs["preprocess.linear_pre.0.weight"]
    put(ours.lift.weight, first[:, 2:])
    put(ours.lift.bias, theirs["preprocess.linear_pre.0.bias"] + first[:, :2].sum(1) / 2)
    put(ours.position.weight, first[:, :2] / UNIT_VARIANCE)
    put(ours.lift_out.weight, theirs["preprocess.linear_post.weight"])
    put(ours.lift_out.bias, theirs["preprocess.linear_post.bias"] + theirs["placeholder"])
    last = f"blocks.{len(ours.blocks) - 1}"
    pairs = {f"{last}.ln_3": ours.norm, f"{last}.mlp2": ours.head}
    for number, block in enumerate(ours.blocks):
        mine, place = block.attention, f"blocks.{number}."
        pairs |= {f"{place}ln_1": block.attention_norm, f"{place}ln_2": block.feed_norm}
        pairs |= {f"{place}mlp.linear_pre.0": block.feed[0], f"{place}mlp.linear_post": block.feed[2]}
        pairs |= {f"{place}Attn.in_project_x": mine.address, f"{place}Attn.in_project_fx": mine.content}
        pairs |= {f"{place}Attn.in_project_slice": mine.slice, f"{place}Attn.to_out.0": mine.out}
        pairs |= {f"{place}Attn.to_{name[0]}": getattr(mine, name) for name in ("query", "key", "value")}
        put(mine.temperature, theirs[f"{place}Attn.temperature"].abs().clamp(min=0.2))
    for name, layer in pairs.items():
        put(layer.weight, theirs[f"{name}.weight"])
        if layer.bias is not None:
            put(layer.bias, theirs[f"{name}.bias"])
    shares = torch.full((30,), 1 / 30, dtype=torch.float64)
    agree(ours.blocks[0].attention(outputs["attention_input"], shares), outputs["attention"], 1e-7)
    x = given(2, 30, 2).view(2, 5, 6, 2).movedim(-1, 1)[..., None]
    agree(ours(x)[..., 0].flatten(1), outputs["output"], 1e-7)


def carry_norm(layer, theirs, name):
    put(layer.weight, theirs[f"{name}/scale"])
    put(layer.bias, theirs[f"{name}/bias"])


def carry_dense(layer, theirs, name):
    put(layer.weight, theirs[f"{name}/kernel"].reshape(layer.in_features, -1).T)
    put(layer.bias, theirs[f"{name}/bias"])


def carry_attention(block, theirs, name):
    cross = block.context_norm is not None
    carry_norm(block.norm, theirs, f"{name}/LayerNorm_0")
    if cross:
        carry_norm(block.context_norm, theirs, f"{name}/LayerNorm_1")
    carry_norm(block.feed_norm, theirs, f"{name}/LayerNorm_{1 + cross}")
    inner, width = f"{name}/MultiHeadDotProductAttention_0", block.query.in_features
    carry_dense(block.query, theirs, f"{inner}/query")
    joined = [theirs[f"{inner}/{part}/kernel"].reshape(width, width).T for part in ("key", "value")]
    put(block.key_value.weight, torch.cat(joined))
    put(block.key_value.bias, torch.cat([theirs[f"{inner}/{part}/bias"].flatten() for part in ("key", "value")]))
    carry_dense(block.out, theirs, f"{inner}/out")
    for part, layer in enumerate((block.feed[0], block.feed[2])):
        carry_dense(layer, theirs, f"{name}/MlpBlock_0/Dense_{part}")


def test_cvit_is_the_authors_network(monkeypatch):
    """Put back: GELU by tanh."""
    exact = F.gelu
    monkeypatch.setattr(F, "gelu", lambda x, approximate="tanh": exact(x, approximate="tanh"))
    settings, theirs, outputs = golden("cvit", "plane")
    points = settings["grid_size"][0]
    facts = sk.OperatorSignature(space_dims=2, history=3, in_channels=2, out_channels=1)
    # Their lattice has points on the edges, ours in the middles of cells: the same distances at another sharpness.
    ours = sk.build_model(
        "cvit", facts, patch=4, cells=8, width=settings["emb_dim"], num_layers=settings["depth"],
        num_heads=settings["num_heads"], mlp_ratio=settings["mlp_ratio"], decoder_width=settings["dec_emb_dim"],
        decoder_heads=settings["dec_num_heads"], latent_cells=points, latent_width=settings["latent_dim"],
        sharpness=settings["eps"] * (points / (points - 1)) ** 2, **PLAIN,
    ).double()  # fmt: skip
    carry_dense(ours.patches.embed, theirs, "Encoder_0/PatchEmbed_0/proj")
    put(ours.frames.latents, theirs["Encoder_0/TimeAggregation_0/latents"].expand_as(ours.frames.latents))
    for number, block in enumerate(ours.frames.blocks):
        carry_attention(block, theirs, f"Encoder_0/TimeAggregation_0/CrossAttnBlock_{number}")
    for number, block in enumerate(ours.encoder):
        carry_attention(block, theirs, f"Encoder_0/SelfAttnBlock_{number}")
    carry_attention(ours.decoder[0], theirs, "CrossAttnBlock_0")
    carry_norm(ours.encoder_norm, theirs, "LayerNorm_1")
    carry_dense(ours.bridge, theirs, "Dense_1")
    put(ours.coordinates.latents, theirs["latents"])
    carry_dense(ours.coordinates.embed, theirs, "Dense_0")
    carry_norm(ours.coordinates.norm, theirs, "LayerNorm_0")
    carry_norm(ours.norm, theirs, "LayerNorm_2")
    carry_dense(ours.feed, theirs, "Mlp_0/Dense_0")
    carry_dense(ours.head, theirs, "Mlp_0/Dense_1")
    carry_norm(ours.frames.norm, theirs, "Encoder_0/LayerNorm_0")
    carry_norm(ours.feed_norm, theirs, "Mlp_0/LayerNorm_0")
    seen = {}
    for name, blocks in {"frames": ours.frames.blocks, "encoder": ours.encoder, "decoder": ours.decoder}.items():
        blocks[-1].register_forward_hook(lambda module, inputs, output, name=name: seen.update({name: output}))

    x = given(2, 3, 8, 8, 2)
    output = ours.forward_normalized(x)
    agree(seen["frames"].view_as(outputs["frames"]), outputs["frames"])
    agree(seen["encoder"], outputs["encoder"])
    agree(seen["decoder"][:1, ::5], outputs["decoder"])
    agree(output[..., 0].flatten(1), outputs["output"])


@pytest.mark.parametrize("cells", [8, 16])
def test_local_fno_without_its_integral_is_neuraloperator_s(cells):
    """On square periodic grids; their stencils count in cells of the grid they are built for, of 8 cells."""
    settings, theirs, outputs = golden("local_fno", "differential")
    modes, width = 3, settings["hidden_channels"]
    facts = signature(2, boundary=("periodic", "periodic"))
    ours = sk.build_model(
        "local_fno", facts, width=width, num_modes=modes, num_layers=2, readout_width=2 * width, **PLAIN
    ).double()
    length = 1 / (2 * math.pi * modes)
    for number, layer in enumerate(ours.layers):
        place = f"local_no_blocks.convs.{number}"
        spectral = theirs[f"{place}.weight.tensor"].movedim((0, 1), (2, 3)).roll(-modes, dims=0)
        put(layer.fourier.weight, spectral)
        put(layer.fourier.pointwise.weight, theirs[f"local_no_blocks.local_no_skips.{number}.conv.weight"])
        put(layer.fourier.pointwise.bias, theirs[f"{place}.bias"])
        put(layer.differential.weight, theirs[f"local_no_blocks.differential.{number}.weight"] / (8 * length))
        nn.init.zeros_(layer.integral.weight)
    pairs = {"lifting.fcs.0": ours.lift, "projection.fcs.0": ours.readout.local, "projection.fcs.1": ours.readout.out}
    for name, layer in pairs.items():
        put(layer.weight, theirs[f"{name}.weight"])
        put(layer.bias, theirs[f"{name}.bias"])
    found = ours(given(2, 2, cells, cells)[..., None])[..., 0]
    agree(found[:, ::2, :: cells // 8], outputs[f"output_{cells}"])
