"""U-Net, FNO, F-FNO, LNO and LocalFNO: published sizes, gradients, any grid, kept in folders."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

import spectrakan as sk
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.models.lno import PUBLISHED_SIZES

NAMES = ["unet", "fno", "ffno", "lno", "local_fno"]
TINY = {
    "unet": {"width": 4},
    "fno": {"width": 6, "num_modes": 3, "num_layers": 2},
    "ffno": {"width": 6, "num_modes": 3, "num_layers": 2},
    "lno": {"width": 3, "num_modes": 2},
    "local_fno": {"width": 6, "num_modes": 3, "num_layers": 2, "radius": 0.3},
}
SWITCHES = [
    ("unet", {}),
    ("fno", {}),
    ("fno", {"padding": 0}),
    ("ffno", {}),
    ("ffno", {"share_weights": False, "weight_norm": False}),
    ("lno", {}),
    ("lno", {"num_layers": 2, "norm": True}),
    ("local_fno", {}),
    ("local_fno", {"rings": 3}),
]


def signature(dims: int = 2, **facts) -> sk.OperatorSignature:
    return sk.OperatorSignature(**{"space_dims": dims, "history": 2, "in_channels": 3, "out_channels": 3, **facts})


def built(name: str, facts: sk.OperatorSignature, seed: int = 0, **choices) -> torch.nn.Module:
    torch.manual_seed(seed)
    return sk.build_model(name, facts, **{**TINY[name], **choices})


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("facts", "complex_once", "stored"),
    [
        ({"space_dims": 1, "history": 5, "in_channels": 1, "out_channels": 1}, 23_837, 43_037),
        ({"space_dims": 1, "history": 10, "in_channels": 3, "out_channels": 3}, 24_595, 43_795),
        ({"space_dims": 2, "history": 10, "in_channels": 1, "out_channels": 1}, 465_557, 926_357),
    ],
    ids=["diffusion-reaction", "flow", "shallow water"],
)
def test_fno_has_the_published_number_of_parameters(facts, complex_once, stored):
    model = sk.build_model("fno", sk.OperatorSignature(**facts))
    assert count(model) == stored
    assert stored - sum(layer.weight.numel() // 2 for layer in model.layers) == complex_once


def test_unet_has_the_published_number_of_parameters():
    """7,763,041 for three input channels and one output in 2D, the count known of this architecture."""
    facts = sk.OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=1)
    assert count(sk.build_model("unet", facts)) == 7_763_041


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unet_parameters_by_formula(dims):
    model = sk.build_model("unet", signature(dims, num_params=1), width=8)
    widths = [8, 16, 32, 64, 128]
    down = [6 + 1, *widths]
    expected = sum(3**dims * (a * b + b * b) + 4 * b for a, b in pairwise(down))
    for w in widths[:-1]:
        expected += 2 * w * w * 2**dims + w  # the way up
        expected += 3**dims * (2 * w * w + w * w) + 4 * w
    assert count(model) == expected + 8 * 3 + 3


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_ffno_parameters_by_formula(dims):
    w, m, layers, factor = 64, 16, 24, 4
    inputs = 6 + dims
    spectral = dims * m * w * w * 2
    pointwise = (w * factor * w + 2 * factor * w) + (factor * w * w + 2 * w)
    head = w * 128 + 128 + 128 * 3 + 3
    assert count(sk.build_model("ffno", signature(dims))) == inputs * w + 2 * w + spectral + layers * pointwise + head
    unshared = sk.build_model(
        "ffno", signature(dims), num_layers=4, mlp_ratio=2, share_weights=False, weight_norm=False
    )
    pointwise = (w * 2 * w + 2 * w) + (2 * w * w + w)
    assert count(unshared) == inputs * w + w + 4 * (spectral + pointwise) + head


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_lno_parameters_by_formula(dims):
    w, m, hidden = PUBLISHED_SIZES[dims]
    inputs = 6 + (dims if dims > 1 else 0)
    systems = 2 * w * w * (dims * m + m**dims)
    expected = (inputs * w + w) + systems + (w * w + w) + (w * hidden + hidden) + (hidden * 3 + 3)
    assert count(sk.build_model("lno", signature(dims))) == expected


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_local_fno_parameters_are_fno_s_and_the_branches(dims):
    w, rings = 6, 3
    whole = built("local_fno", signature(dims), rings=rings)
    branches = 2 * (w * w * 3**dims + w * w * (1 + 2 * dims * (rings - 1)))
    assert count(whole) == count(built("fno", signature(dims))) + branches


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("name", "choices"), SWITCHES, ids=str)
def test_every_parameter_gets_a_gradient_and_none_is_complex(name, choices, dims):
    model = built(name, signature(dims, num_params=2), **choices)
    x = torch.randn(3, 2, *[8, 9, 10][:dims], 3)
    model(x, params=torch.randn(3, 2)).square().mean().backward()
    for key, parameter in model.named_parameters():
        assert not parameter.is_complex(), key
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
        assert float(parameter.grad.abs().max()) > 0, key


def test_parameters_say_what_they_are():
    names = {name: {key for key, _ in built(name, signature()).named_parameters()} for name in NAMES}
    assert {"layers.0.systems.poles.0", "layers.0.systems.poles.1", "layers.0.systems.residues"} <= names["lno"]
    assert {"layers.0.fourier.weight", "layers.0.differential.weight", "layers.0.integral.weight"} <= names[
        "local_fno"
    ]
    assert all(any(key.startswith(part) for key in names["ffno"]) for part in ("lift", "spectral", "feed_forward"))
    assert all(any(key.startswith(part) for key in names["unet"]) for part in ("encoder", "rise", "decoder"))


@pytest.mark.parametrize("name", ["fno", "ffno", "local_fno", "lno"])
def test_every_entry_of_a_spectral_weight_is_reached(name):
    """But for the imaginary part of the constant mode, which no real field can see in the last axis."""
    model = built(name, signature(num_params=2))
    model(torch.randn(16, 2, 12, 11, 3), params=torch.randn(16, 2)).square().mean().backward()
    for key, parameter in model.named_parameters():
        if parameter.shape[-1] == 2:
            reached = parameter.grad[..., 0] != 0 if "mixing" in key or "weight" in key else parameter.grad != 0
            assert bool(reached.all()), key


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_comes_back_bit_for_bit(name, dims, tmp_path):
    model = built(name, signature(dims, num_params=1), seed=4)
    x, params = torch.randn(2, 2, *[9, 8, 7][:dims], 3), torch.randn(2, 1)
    model(x, params)  # moves the running means of batch norm, which must be kept too
    model.eval()
    model.save_pretrained(tmp_path / "model")
    again = sk.from_pretrained(tmp_path / "model").eval()
    assert again.config == model.config
    assert torch.equal(again(x, params), model(x, params))


@pytest.mark.parametrize("cells", [4, 5, 7, 13, 31, 97])
@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_cells_works(name, cells):
    for dims in (1, 2):
        for boundary in ((), ("periodic",) * dims):
            model = built(name, signature(dims, boundary=boundary))
            other = 4 if cells > 40 else cells
            output = model(torch.randn(1, 2, *[cells, other][:dims], 3))
            assert torch.isfinite(output).all()


@pytest.mark.parametrize("name", NAMES)
def test_wrong_shapes_are_refused(name):
    model = built(name, signature(num_params=2))
    params = torch.randn(1, 2)
    for shape in ((1, 3, 8, 8, 3), (1, 2, 8, 8, 4), (1, 2, 8, 3), (1, 2, 3, 8, 3)):
        with pytest.raises(ShapeError, match="expected"):
            model(torch.randn(shape), params=params)
    with pytest.raises(ShapeError, match=r"params of shape \(1, 2\)"):
        model(torch.randn(1, 2, 8, 8, 3))
    with pytest.raises(ShapeError, match="the grid has"):
        model(torch.randn(1, 2, 8, 8, 3), params=params, grid=sk.Grid.uniform((8, 9)))


def test_wrong_choices_are_refused():
    with pytest.raises(ConfigError, match="did you mean 'num_modes'"):
        sk.build_model("fno", signature(), num_mode=3)
    with pytest.raises(ConfigError, match="did you mean 'local_fno'"):
        sk.build_model("localfno", signature())


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_history_reach_the_answer(name):
    model = built(name, signature(num_params=2)).eval()
    x, params = torch.randn(1, 2, 8, 8, 3), torch.randn(1, 2)
    before = model(x, params)
    older = x.clone()
    older[:, 0] += 1.0
    assert not torch.allclose(model(older, params), before, atol=1e-4)
    assert not torch.allclose(model(x, params + 1.0), before, atol=1e-4)


@pytest.mark.parametrize("name", ["fno", "ffno", "lno", "local_fno"])
def test_the_grid_is_honoured(name):
    """On stretched cells a smooth function gives nearly what it gives on equal ones; ignoring the grid does not."""
    # The ball of the local integral is counted in cells, so it is wider where they are: a small one is asked for.
    choices = {"radius": 0.03} if name == "local_fno" else {}
    model = built(name, signature(1, history=1, in_channels=1, out_channels=1, steady=True), **choices).double()
    cells = 256
    place = torch.linspace(0, 1, cells + 1, dtype=torch.float64)
    grid = sk.Grid.from_edges([place + 0.12 * torch.sin(2 * torch.pi * place) / torch.pi])

    def smooth(x):
        return (torch.sin(2 * torch.pi * x) + 0.3 * torch.cos(4 * torch.pi * x)).view(1, 1, -1, 1)

    equal = sk.Grid.uniform((cells,)).coordinates[0]
    with torch.no_grad():
        reference = model(smooth(equal))[0, :, 0].numpy()
        stretched = model(smooth(grid.coordinates[0]), grid=grid)[0, :, 0].numpy()
        blind = model(smooth(grid.coordinates[0]))[0, :, 0].numpy()
    expected = np.interp(grid.coordinates[0].numpy(), equal.numpy(), reference)
    inside = slice(8, -8)
    aware, unaware = (np.abs(value - expected)[inside].max() for value in (stretched, blind))
    assert aware < 0.2 * unaware
