"""The whole operator: gradients everywhere, physical units outside, every switch, clear refusals."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import spectrakan as sk
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.models.spectrakan import SpectraKANConfig, fine_blocks
from spectrakan.models.stages import Stages

SMALL = {
    "width": 8,
    "num_modes": 4,
    "num_layers": 2,
    "coarse_num_layers": 2,
    "coarse_num_modes": 3,
    "noise_level": 0.0,
}
SWITCHES = [
    {},
    {"variant": "paper"},
    {"token": "mlp"},
    {"token": "raw"},
    {"token": "none"},
    {"pool": "mean"},
    {"pool": "center+mean+std"},
    {"use_gml": False},
    {"coarse_num_layers": 0},
    {"gates": False},
    {"squeeze_excite": "none"},
    {"squeeze_excite": "plain", "block": "skip"},
    {"block": "plain"},
    {"block": "skip"},
    {"basis": "cosine", "coarse_mixing": "axial"},
    {"basis": "sine", "coarse_mixing": "axial"},
    {"basis": "extended"},
    {"coarse_mixing": "axial"},
    {"coarse_mixing": "joint", "basis": "extended"},
    {"extension": "zero"},
    {"activation": "silu"},
    {"activation": "relu"},
    {"multiplicative_readout": True},
]


def signature(dims: int = 2, **facts) -> sk.OperatorSignature:
    return sk.OperatorSignature(**{"space_dims": dims, "history": 2, "in_channels": 3, "out_channels": 3, **facts})


def built(facts: sk.OperatorSignature, seed: int = 0, **choices) -> torch.nn.Module:
    torch.manual_seed(seed)
    return sk.build_model("spectrakan", facts, **{**SMALL, **choices})


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("choices", SWITCHES, ids=str)
def test_every_parameter_gets_a_gradient_and_none_is_complex(dims, choices):
    facts = signature(dims, num_params=2)
    reached: dict[str, float] = {}
    for seed in range(3):
        model = built(facts, seed, **choices)
        if model.product_gain is not None:
            torch.nn.init.ones_(model.product_gain)  # at zero the factors have no gradient yet
        x = torch.randn(8, 2, *[8, 9, 10][:dims], 3)
        model(x, params=torch.randn(8, 2)).square().mean().backward()
        for name, parameter in model.named_parameters():
            assert not parameter.is_complex(), name
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name
            reached[name] = max(reached.get(name, 0.0), float(parameter.grad.abs().max()))
    dead = [name for name, size in reached.items() if size == 0]
    assert not dead


def test_each_gate_each_knot_and_each_weight_is_reached():
    """Entry by entry, but for two kinds that nothing can see: the imaginary part of a constant mode, for fields are
    real, and the last knot of a spline, which lies beyond its grid (it counts where splines run out to zero)."""
    totals: dict[str, torch.Tensor] = {}
    for seed in range(3):
        model = built(signature(), seed, pool="center")  # `dynamics` has numbers that are zero between walls
        x = torch.randn(128, 2, 16, 15, 3)
        model.fit_windows([sk.Window(x, x[:, -1:] + 1)])  # grids where the data are
        model(x).square().mean().backward()
        for name, parameter in model.named_parameters():
            totals[name] = totals.get(name, 0) + parameter.grad.abs()
    for name, total in totals.items():
        if name.endswith(("mixing.0.weight", "mixing.1.weight")):
            total[0, ..., 1] = 1.0
        if name.endswith("joint.weight"):
            total[0, 0, ..., 1] = 1.0
        if name.endswith("knots.logit"):
            total[:, -1] = 1.0
        if "squeeze_excite." in name:
            continue  # rectified: a unit may be off for three seeds
        assert bool((total > 0).all()), name


def test_a_fitted_normaliser_changes_what_the_loss_sees_and_nothing_a_caller_sees():
    """The same field in other units: predictions follow the units, the network sees the same numbers."""
    metres, feet = built(signature()), built(signature())
    metres.input_units.set(mean=torch.tensor([1.0, 2.0, 3.0]), scale=torch.tensor([0.5, 2.0, 4.0]))
    scale, offset = 3.28, 7.0
    feet.input_units.set(mean=torch.tensor([1.0, 2.0, 3.0]) * scale + offset, scale=scale * metres.input_units.scale)
    x = torch.randn(2, 2, 10, 10, 3)
    ours, theirs = metres(x), feet(x * scale + offset)
    assert torch.allclose(theirs, ours * scale + offset, atol=1e-4)
    seen = metres.forward_normalized(metres.input_units.normalize(x))
    assert torch.allclose(seen, metres.input_units.normalize(ours), atol=1e-5)
    assert not torch.allclose(seen, ours, atol=1e-2), "the loss sees unit scale, the caller physical units"


@pytest.mark.parametrize("cells", [4, 5, 7, 13, 31, 97])
def test_any_number_of_cells_works(cells):
    for dims in (1, 2):
        model = built(signature(dims))
        other = 4 if dims == 2 and cells > 40 else cells
        output = model(torch.randn(1, 2, *[cells, other][:dims], 3))
        assert torch.isfinite(output).all()


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 3, 8, 8, 3), r"\(batch, 2, \*, \*, 3\).*got \(1, 3, 8, 8, 3\)"),
        ((1, 2, 8, 8, 4), r"\(batch, 2, \*, \*, 3\).*got \(1, 2, 8, 8, 4\)"),
        ((1, 2, 8, 3), "expected an input of shape"),
        ((1, 2, 3, 8, 3), r"at least 4 cells.*\(3, 8\)"),
    ],
)
def test_wrong_shapes_are_refused_with_expected_and_got(shape, message):
    with pytest.raises(ShapeError, match=message):
        built(signature())(torch.randn(shape))


def test_wrong_parameters_and_grids_are_refused():
    model = built(signature(num_params=2))
    x = torch.randn(3, 2, 8, 8, 3)
    for params in (None, torch.randn(3, 1), torch.randn(2, 2)):
        with pytest.raises(ShapeError, match=r"params of shape \(3, 2\)"):
            model(x, params=params)
    with pytest.raises(ShapeError, match="the grid has"):
        model(x, params=torch.randn(3, 2), grid=sk.Grid.uniform((8, 9)))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"widht": 8}, "unknown key.*did you mean 'width'"),
        ({"width": 0}, "width"),
        ({"width": "wide"}, "width"),
        ({"variant": "papre"}, "did you mean 'paper'"),
        ({"basis": ["fourier"]}, "basis names 1 axes"),
        ({"noise_lvel": 0.1}, "unknown key.*did you mean 'noise_level'"),
        ({"noise_level": -1.0}, "noise_level"),
        ({"conditioning": "film", "token": "none"}, "needs a token"),
    ],
)
def test_wrong_choices_are_refused(choices, message):
    with pytest.raises(ConfigError, match=message):
        built(signature(), **choices)


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'spectrakan'"):
        sk.build_model("spectracan", signature())


def test_the_token_and_the_modulation_are_what_the_readout_gets():
    model = built(signature(num_params=1), attention_width=5, token_width=6, conditioning="readout")
    x, params = torch.randn(4, 2, 9, 8, 3), torch.randn(4, 1)
    token, value = model.token(x, params), model.modulation(x, params)
    assert token.shape == (4, 6)
    assert value.shape == (4, 5)
    axes = model.axes(x, None)
    features = model.trunk(
        torch.cat([x.movedim((1, -1), (0, 1)).flatten(0, 1), params.T[..., None, None].expand(-1, -1, 9, 8)]), axes
    )
    answer = model.readout(features, value).movedim(0, -1)
    assert torch.allclose(model(x, params), x[:, -1] + answer, atol=1e-5)
    weights = model.attention(x, params)
    assert torch.allclose(weights.sum((2, 3)), torch.ones(4, 1), atol=1e-6)


def test_without_a_token_spectrakan_is_amfno():
    facts = signature()
    ours, trunk = built(facts, token="none"), sk.build_model("amfno", facts, **SMALL)
    trunk.load_state_dict(ours.state_dict())
    x = torch.randn(2, 2, 8, 8, 3)
    assert torch.equal(ours(x), trunk(x))
    with pytest.raises(ConfigError, match="no token"):
        ours.token(x)


def test_prediction_is_an_increment_in_time_and_a_departure_from_the_mean_field_otherwise():
    assert built(signature()).predict == "increment"
    assert built(signature(steady=True)).predict == "mean_field"
    assert built(signature(out_channels=1)).predict == "mean_field"
    assert built(signature(), predict="direct").predict == "direct"
    with pytest.raises(ConfigError, match="equal input and output"):
        built(signature(out_channels=1), predict="increment")


def test_preparing_fits_the_increment_and_the_splines_grid():
    model = built(signature())
    inputs = 3 * torch.randn(32, 2, 8, 8, 3) + 5
    targets = inputs[:, -1:] + 0.01 * torch.randn(32, 1, 8, 8, 3)
    model.input_units.set(mean=torch.full((3,), 5.0), scale=torch.full((3,), 3.0))
    model.fit_windows([sk.Window(inputs, targets)], units=False)
    assert torch.allclose(model.residual_scale, torch.full((3,), 0.01 / 3), rtol=0.1)
    summary = model.global_token.summary(model.input_units.normalize(inputs), None, model.axes(inputs, None))
    knots = model.global_token.network.layers[0].knots()
    assert bool((knots[:, 3] <= summary.amin(0)).all() & (knots[:, -4] >= summary.amax(0)).all())


def test_latitude_weights_reach_attention_and_pooling():
    facts = signature(history=1, boundary=("wall", "periodic"))
    model = built(facts, pool="mean")
    grid = sk.Grid.latitude_longitude(torch.linspace(-85, 85, 18), torch.arange(0, 360, 20.0))
    x = torch.randn(2, 1, 18, 18, 3)
    assert not torch.allclose(model(x), model(x, grid=grid), atol=1e-4)
    summary = model.global_token.summary(x, None, model.axes(x, grid))
    expected = (x[:, 0] * grid.volumes()[..., None]).sum((1, 2))
    assert torch.allclose(summary, expected.float(), atol=1e-6)


@pytest.mark.parametrize("dims", [1, 2])
def test_without_edges_an_evolving_field_may_lie_anywhere(dims, generator):
    facts = sk.OperatorSignature(
        space_dims=dims, history=2, in_channels=1, out_channels=1, boundary=("periodic",) * dims
    )
    field = torch.randn(2, 2, *[16] * dims, 1, generator=generator, dtype=torch.float64)
    shifts, places = (5, -3)[:dims], tuple(range(1, dims + 1))
    moved = {}
    for coordinates in ("bounded", "all"):
        model = sk.build_model(
            "spectrakan", facts, width=8, num_modes=4, pool="mean", coordinates=coordinates
        ).double()
        with torch.no_grad():
            there = model(field.roll(shifts, tuple(place + 1 for place in places)))
            moved[coordinates] = float((there - model(field).roll(shifts, places)).abs().max())
    assert moved["bounded"] < 1e-12 < 1e-4 < moved["all"]


def test_only_walls_and_held_edges_make_places_differ():
    boundary = ("wall", "periodic", "dirichlet")
    facts = sk.OperatorSignature(space_dims=3, history=1, in_channels=1, out_channels=1, boundary=boundary)
    built_with = {
        choice: sk.build_model("spectrakan", facts, width=4, num_modes=2, coordinates=choice).trunk.fine
        for choice in ("bounded", "all")
    }
    assert built_with["bounded"].located == (0, 2)
    assert built_with["all"].located == (0, 1, 2)
    assert built_with["bounded"].lift.weight.shape[1] == 3


def test_the_class_default_is_the_default():
    config = SpectraKANConfig()
    for facts in (signature(1), signature(2), signature(2, steady=True)):
        assert sk.build_model("spectrakan", facts).config == config
        assert sk.build_model("spectrakan", facts).stages == Stages()
    assert len(dataclasses.fields(SpectraKANConfig)) == 24
    assert len(dataclasses.fields(Stages)) <= 6


def test_auto_follows_the_signature():
    """Residual blocks without squeeze-excitation where fields evolve, open skip blocks where they are steady."""
    evolving, steady = (
        fine_blocks(signature(1), SpectraKANConfig()),
        fine_blocks(signature(2, steady=True), SpectraKANConfig()),
    )
    assert (evolving.kind, evolving.squeeze_excite, evolving.num_modes) == ("residual", "none", 24)
    assert (steady.kind, steady.squeeze_excite, steady.num_modes) == ("skip", "open", 20)
    literal = sk.build_model("spectrakan", signature(2), variant="paper")
    block = literal.trunk.fine.blocks[0]
    assert block.squeeze_excite.squeeze.bias is None
    assert block.squeeze_excite.squeeze.out_features == 8
    assert torch.equal(block.squeeze_excite(torch.zeros(1, 32)), torch.full((1, 32), 0.5))
    assert (literal.predict, literal.output_filter, literal.trunk.stride) == ("direct", None, 2)
    assert block.pointwise is None
    assert block.widen is None


def test_an_open_squeeze_excitation_starts_open():
    block = sk.build_model("spectrakan", signature(2, steady=True)).trunk.fine.blocks[0]
    with torch.no_grad():
        block.squeeze_excite.squeeze.weight.zero_()
        block.squeeze_excite.squeeze.bias.zero_()
    torch.testing.assert_close(block.squeeze_excite(torch.randn(3, 32)), torch.full((3, 32), 0.9))
