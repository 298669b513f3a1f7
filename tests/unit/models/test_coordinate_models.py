"""What Transolver, CViT and DeepOKAN have in common: gradients, sizes, folders, refusals."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

import spectrakan as sk
from spectrakan.errors import ConfigError, ShapeError

TINY = {
    "transolver": {"width": 8, "num_layers": 2, "num_heads": 2, "num_slices": 3},
    "cvit": {
        "width": 8,
        "num_layers": 1,
        "num_heads": 2,
        "decoder_width": 12,
        "decoder_heads": 3,
        "patch": 4,
        "cells": 8,
        "latent_cells": 6,
        "latent_width": 5,
        "sharpness": 50.0,
    },
    "deepokan": {"sensors": 5, "width": 6, "num_layers": 2, "num_features": 7, "num_centres": 4},
    "deeponet": {"sensors": 5, "width": 12, "num_layers": 2, "num_features": 7},
}
NAMES = sorted(TINY)


def signature(dims: int = 2, **facts) -> sk.OperatorSignature:
    return sk.OperatorSignature(**{"space_dims": dims, "history": 3, "in_channels": 2, "out_channels": 2, **facts})


def built(name: str, facts: sk.OperatorSignature, **choices) -> torch.nn.Module:
    torch.manual_seed(0)
    return sk.build_model(name, facts, **{**TINY[name], **choices})


CASES = [(name, {}) for name in NAMES] + [
    ("cvit", {"decoder_layers": 2, "time_depth": 1}),
]


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("name", "choices"), CASES, ids=str)
def test_every_parameter_gets_a_gradient_and_none_is_complex(name, choices, dims):
    model = built(name, signature(dims, num_params=2, boundary=("periodic", "wall", "outflow")[:dims]), **choices)
    answer = model(torch.randn(6, 3, *[8, 9, 10][:dims], 2), params=torch.randn(6, 2))
    # A target that no symmetry of the network knows, so that no gradient vanishes by chance.
    (answer - torch.randn_like(answer)).square().mean().backward()
    for key, parameter in model.named_parameters():
        assert not parameter.is_complex(), key
        assert parameter.grad is not None, key
        assert bool(torch.isfinite(parameter.grad).all()), key
        assert float(parameter.grad.abs().max()) > 0, key


@pytest.mark.parametrize("name", NAMES)
def test_one_frame_is_enough_and_leaves_no_parameter_without_a_gradient(name):
    model = built(name, signature(history=1, out_channels=1, steady=True))
    model(torch.randn(4, 1, 8, 8, 2)).square().mean().backward()
    assert all(float(p.grad.abs().max()) > 0 for p in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_history_parameters_and_samples_all_count_and_samples_do_not_mix(name):
    model = built(name, signature(num_params=1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        x, params = torch.randn(2, 3, 8, 8, 2), torch.randn(2, 1)
        answer = model(x, params)
        for frame in range(3):
            other = x.clone()
            other[0, frame] += torch.randn(8, 8, 2)
            changed = model(other, params)
            assert not torch.allclose(changed[0] - other[0, -1], answer[0] - x[0, -1], atol=1e-5), frame
            assert torch.allclose(changed[1], answer[1], atol=1e-5)
        assert not torch.allclose(model(x, params + 1)[0], answer[0], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_gives_it_back_bit_for_bit(name, tmp_path):
    model = built(name, signature(num_params=1, boundary=("periodic", "wall")))
    x, params = torch.randn(3, 3, 9, 8, 2), torch.randn(3, 1)
    model.input_units.set(mean=torch.tensor([1.5, -2.0]), scale=torch.tensor([0.3, 7.0]))
    model.fit_windows([sk.Window(x, torch.randn(3, 1, 9, 8, 2), params)], units=False)
    model.save_pretrained(tmp_path / "model")
    back = sk.from_pretrained(tmp_path / "model")
    assert back.config == model.config
    assert torch.equal(back(x, params), model(x, params))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cells", [4, 5, 13, 31])
def test_any_number_of_cells_works_in_any_dimension(name, cells):
    for dims in (1, 2, 3):
        model = built(name, signature(dims))
        answer = model(torch.randn(1, 3, *[cells, 4, 5][:dims], 2))
        assert bool(torch.isfinite(answer).all())


@pytest.mark.parametrize("name", NAMES)
def test_wrong_shapes_are_refused(name):
    model = built(name, signature(num_params=1))
    for shape in ((1, 2, 8, 8, 2), (1, 3, 8, 8, 1), (1, 3, 8, 2), (1, 3, 3, 8, 2)):
        with pytest.raises(ShapeError, match="expected"):
            model(torch.randn(shape), params=torch.randn(1, 1))
    with pytest.raises(ShapeError, match=r"params of shape \(1, 1\)"):
        model(torch.randn(1, 3, 8, 8, 2))


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("transolver", {"num_slice": 3}, "did you mean 'num_slices'"),
        ("transolver", {"width": 9}, "multiple of num_heads, got 9 and 2"),
        ("cvit", {"cells": 9}, "cells must be a multiple of patch, got 9 and 4; set cells=32"),
        ("cvit", {"decoder_heads": 5}, "multiple of its heads, got 12 and 5"),
        ("cvit", {"sharpness": 0.0}, "sharpness"),
        ("deepokan", {"num_centres": 1}, "num_centres"),
    ],
)
def test_wrong_choices_are_refused(name, choices, message):
    with pytest.raises(ConfigError, match=message):
        built(name, signature(), **choices)


def linear(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs


def radial(*widths: int) -> int:
    """30 centres a layer, and one weight for each edge and centre."""
    return sum(30 * inputs * outputs + 30 for inputs, outputs in pairwise(widths))


def test_transolver_has_the_published_number_of_parameters():
    """Model defaults, 2D, one field in and out: 5 blocks of width 256, 8 heads, 32 slices."""
    width, head = 256, 32
    attention = 3 * linear(width, width) + linear(head, 32) + 3 * head**2 + 8
    block = attention + 2 * linear(width, width) + 2 * 2 * width
    lift = linear(1 + 2, 2 * width) + linear(2 * width, width)
    model = sk.build_model("transolver", signature(history=1, in_channels=1, out_channels=1, steady=True))
    assert sum(p.numel() for p in model.parameters()) == lift + 5 * block + 2 * width + linear(width, 1)


@pytest.mark.parametrize(("dims", "patch", "cells"), [(1, 4, 200), (2, 16, 128)])
def test_cvit_has_the_published_number_of_parameters(dims, patch, cells):
    """Class defaults, 10 frames of one field: width 256, 3 blocks, 2 blocks over time, 1 decoder block."""
    width, patches = 256, (cells // patch) ** dims
    attend = 4 * linear(width, width) + 2 * linear(width, width) + 2 * 2 * width
    cross = attend + 2 * width
    encoder = linear(patch**dims, width) + patches * width + 2 * cross + 2 * width + 3 * attend + 2 * width
    decoder = cells**dims * 256 + linear(256, width) + 2 * width + cross
    tail = linear(width, width) + 2 * width + linear(width, width) + 2 * width + linear(width, 1)
    model = sk.build_model("cvit", signature(dims, history=10, in_channels=1, out_channels=1))
    assert sum(p.numel() for p in model.parameters()) == encoder + decoder + tail


def test_deepokan_has_the_number_of_parameters_of_its_layers():
    okan = sk.build_model("deepokan", signature(history=1, in_channels=1, out_channels=1, steady=True))
    assert sum(p.numel() for p in okan.parameters()) == radial(256, 50, 50, 40) + radial(2, 50, 50, 40)


def test_parameters_say_what_they_are():
    transolver = dict(built("transolver", signature()).blocks[0].attention.named_parameters())
    assert {"slice.weight", "query.weight", "key.weight", "value.weight", "temperature"} <= transolver.keys()
    assert "latents" in dict(built("cvit", signature()).coordinates.named_parameters())
    assert "centres" in dict(built("deepokan", signature()).branch.layers[0].named_parameters())


def test_transolver_keeps_the_orthogonal_start_of_its_slices():
    model = built("transolver", signature(), num_slices=4)
    for block in model.blocks:
        weight = block.attention.slice.weight
        assert torch.allclose(weight @ weight.T, torch.eye(4), atol=1e-5)
        gain = float(block.attention.out.weight.detach().std()) * 8**0.5
        assert 0.6 < gain < 1.0


@torch.no_grad()
def test_transolver_weighs_cells_by_volume():
    """Two halves of a cell say together what the cell said: uneven grids are no different from even ones."""
    model = built("transolver", signature(1, history=1)).double()
    whole = sk.Grid.from_edges([torch.linspace(0, 1, 9)])
    x = torch.randn(1, 1, 8, 2).double()
    model.position.weight.zero_()  # positions differ between a cell and its halves; everything else must agree
    edges = torch.cat([torch.linspace(0, 1, 9), torch.tensor([1 / 16])]).sort().values
    halved = sk.Grid.from_edges([edges])
    split = torch.cat([x[:, :, :1], x], dim=2)
    assert torch.allclose(model(split, grid=halved)[:, 1:], model(x, grid=whole), atol=1e-6)


@torch.no_grad()
def test_deepokan_is_branch_times_trunk_by_loops_with_parameters_behind_the_frames():
    model = built("deepokan", signature(1, boundary=("periodic",), num_params=1, steady=True)).double()
    x, params = torch.randn(2, 3, 5, 2).double(), torch.randn(2, 1).double()
    ours = model(x, params)
    for n in range(2):
        seen = torch.cat([x[n].flatten(), params[n]])
        coefficients = model.branch(seen)
        for i in range(5):
            angle = 2 * math.pi * (i + 0.5) / 5
            basis = model.trunk(torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64))
            for c in range(2):
                value = sum(float(coefficients[7 * c + k] * basis[k]) for k in range(7)) / math.sqrt(7)
                assert float(ours[n, i, c]) == pytest.approx(value, abs=1e-10)


@torch.no_grad()
def test_deeponet_adds_a_bias_to_branch_times_trunk_of_perceptrons():
    model = built("deeponet", signature(1, boundary=("wall",), num_params=1, steady=True)).double()
    model.bias.copy_(torch.tensor([0.3, -0.7], dtype=torch.float64))
    x, params = torch.randn(2, 3, 5, 2).double(), torch.randn(2, 1).double()
    coefficients = model.branch(torch.cat([x[1].flatten(), params[1]]))
    basis = model.trunk(torch.tensor([2 * 0.7 - 1], dtype=torch.float64))
    assert bool((basis.abs() <= 1).all()), "tanh after the last layer of the trunk"
    value = float(coefficients[7:] @ basis) / math.sqrt(7) - 0.7
    assert float(model(x, params)[1, 3, 1]) == pytest.approx(value, abs=1e-10)
    online = sk.build_model("deeponet", signature(history=1, in_channels=1, out_channels=1, steady=True))
    layers = [(1024, 128), (128, 128), (128, 128), (128, 128), (2, 128), (128, 128), (128, 128), (128, 128)]
    assert sum(p.numel() for p in online.parameters()) == sum(a * b + b for a, b in layers) + 1


@torch.no_grad()
def test_deepokan_is_branch_times_trunk_and_fits_its_first_centres_to_data():
    model = built("deepokan", signature(2, history=1, steady=True), predict="direct", noise_level=0.0).double()
    x = 3 + 2 * torch.rand(4, 1, 5, 5, 2).double()
    model.fit_windows([sk.Window(x[:2], x[:2]), sk.Window(x[2:], x[2:])], units=False)
    centres = model.branch.layers[0].centres
    assert float(centres[0]) == pytest.approx(float(x.min()), abs=1e-6)
    assert float(centres[-1]) == pytest.approx(float(x.max()), abs=1e-6)
    coefficients = model.branch(x[1].flatten())
    basis = model.trunk(torch.tensor([2 * 0.5 - 1, 2 * 0.9 - 1], dtype=torch.float64))
    value = sum(float(coefficients[7 + k] * basis[k]) for k in range(7)) / math.sqrt(7)
    assert float(model(x)[1, 2, 4, 1]) == pytest.approx(value, abs=1e-10)


@torch.no_grad()
def test_cvit_asks_each_place_by_itself():
    """The answer in a cell depends on the other cells only through the encoder: two grids that share cells agree."""
    model = built("cvit", signature(1, history=1, steady=True)).double()
    x = torch.randn(1, 1, 8, 2).double()
    axes = model.axes(x, None)
    tokens = model.bridge(model.encode(x, None, axes))
    queries = model.coordinates(axes)
    whole = model(x)
    for i in range(8):
        y = queries[None, i : i + 1]
        for block in model.decoder:
            y = block(y, tokens)
        y = model.norm(y)
        alone = model.head(model.feed_norm(y + torch.nn.functional.gelu(model.feed(y))))
        assert torch.allclose(alone[0, 0], whole[0, i], atol=1e-10)
