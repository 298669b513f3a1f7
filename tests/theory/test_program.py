"""The affine program of a model: its Jacobian, what it refuses, the rules one by one, and bounds of rollouts."""

from __future__ import annotations

import math

import pytest
import torch
from motions import around
from torch import Tensor

import spectrakan as sk
from spectrakan.errors import ConfigError
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.theory import reach as reach_module
from spectrakan.theory.attack import AttackSettings, attack, largest
from spectrakan.theory.norms import nan_to_inf
from spectrakan.theory.parts import model_map
from spectrakan.theory.program import Program
from spectrakan.theory.reach import Reach
from spectrakan.theory.rules import Curve, Product
from spectrakan.theory.sample_bounds import bound_sample, model_program, rollout_growth
from spectrakan.theory.slopes import FUNCTIONS

SMALL = {
    "width": 4, "num_modes": 3, "num_layers": 2, "token_width": 4, "attention_width": 4, "readout_width": 8,
    "pool": "center", "conditioning": "readout",
}  # fmt: skip


def small_model(seed: int = 0, **config) -> SpectraKAN:
    signature = sk.OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1, boundary=("periodic",))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = sk.build_model("spectrakan", signature, **(SMALL | config))
        if model.conditioning is not None:
            for layer in (model.conditioning.film, model.conditioning.transport):
                if layer is not None:
                    torch.nn.init.normal_(layer.weight, std=0.2)
    return model.double().eval().requires_grad_(False)


def window(seed: int = 1) -> Tensor:
    return torch.randn(1, 2, 9, 1, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("conditioning", ["readout", "film", "transport", "both"])
def test_the_program_has_the_values_and_the_jacobian_of_the_model(conditioning):
    model, history = small_model(conditioning=conditioning), window()
    axes = model.axes(history, None)
    program = model_program(model, history, None, axes)
    maps = {name: model_map(model, name, None, axes) for name in ("token", "modulation", "prediction")}
    reach = Reach(program, 1e-9)
    for name in maps:
        assert torch.allclose(program.targets[name], maps[name](history), rtol=1e-12, atol=1e-12)
        jacobian = torch.autograd.functional.jacobian(lambda x, name=name: maps[name](x), history)
        found = reach.target(name, keep=True).joint.jacobian
        assert torch.allclose(found, jacobian.reshape(found.shape), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: x.log1p(), "'log1p'"),
        (lambda x: x.softmax(-1).cumsum(-1), "'cumsum' of a softmax"),
        (lambda x: x.softmax(-1) + x, "'add' of a softmax"),
        (lambda x: x.detach() + x, "'detach'"),
        (lambda x: torch.lerp(x, 2 * x, x), "'lerp'"),
        (lambda x: torch.nn.functional.gelu(x, approximate="tanh"), "'gelu'"),
        (lambda x: torch.where(x > 0, x, 2 * x), "'gt'|'where'"),
    ],
    ids=["log1p", "cumsum", "softmax", "detach", "lerp", "gelu", "where"],
)
def test_an_operation_without_a_rule_is_refused(function, what):
    with pytest.raises(ConfigError, match=f"no bound is known for ({what})"):
        Program(lambda x: {"out": function(x)}, torch.rand(1, 4).double(), [])


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("size", [1e-3, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("relaxed", [False, True], ids=["tangent", "chord"])
def test_the_rest_of_every_curve_stays_within_its_bounds(name, size, relaxed):
    source = torch.Generator().manual_seed(0)
    centre = 3 * torch.randn(1, 60, generator=source).double()
    if name in ("sqrt", "reciprocal"):
        centre = centre.abs() + 1.01 * size
    reach = size * torch.rand(1, 60, generator=source).double()
    rule = Curve(name, centre)
    if relaxed:
        rule.relax(around(centre, reach, reach))
    rest = rule.rest(around(centre, reach, torch.ones_like(reach)))
    ways = torch.cat(
        [2 * torch.rand(3000, 60, generator=source).double() - 1, torch.tensor([[1.0], [-1.0]]).expand(2, 60)]
    )
    points = centre + ways * reach
    error = FUNCTIONS[name](points) - rule.out - rule.linear(points - centre)
    slack = 1e-12 * (1 + FUNCTIONS[name](points).abs())
    factors, moved = rest.factors, (points - centre).abs()
    assert bool((error <= rest.high + slack).all())
    assert bool((error >= rest.low - slack).all())
    assert bool((error <= factors.up * moved + slack).all())
    assert bool((-error <= factors.down * moved + slack).all())
    # A bend without a finite bound says nothing, also of points at the centre.
    assert bool((error <= nan_to_inf(factors.bend_up * moved.square() / 2) + slack).all())
    assert bool((-error <= nan_to_inf(factors.bend_down * moved.square() / 2) + slack).all())
    pairs = error[1:] - error[:-1]
    rates = factors.steep * (points[1:] - points[:-1]).abs()
    assert bool((pairs.abs() <= rates + 2 * slack[1:] + 2 * slack[:-1]).all())
    assert torch.equal(rest.rate, factors.steep)
    if size < 0.1 and name not in ("relu", "sqrt", "reciprocal"):
        assert float((rest.high - rest.low).sum()) <= 1.1 * float((error.amax(0) - error.amin(0)).sum()) + 1e-10


@pytest.mark.parametrize("name", ["gelu", "tanh"])
def test_a_chord_leaves_less_than_the_tangent_over_a_wide_interval(name):
    centre = torch.linspace(-2, 2, 9)[None].double()
    reach = torch.full_like(centre, 2.0)
    widths = []
    for relaxed in (False, True):
        rule = Curve(name, centre)
        if relaxed:
            rule.relax(around(centre, reach, reach))
        rest = rule.rest(around(centre, reach, reach))
        widths.append(float((rest.high - rest.low).sum()))
    assert widths[1] < 0.8 * widths[0]


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_a_bounded_function_stays_near_its_range_over_a_vast_interval(name):
    centre = torch.linspace(-3, 3, 7)[None].double()
    for reach in (10.0, 1e3, 1e6, math.inf):
        motion = around(centre, torch.full_like(centre, reach), centre)
        rule = Curve(name, centre)
        rule.relax(motion)
        rest = rule.rest(motion)
        span = rest.high - rest.low + 2 * (rule.slope * motion.reach).nan_to_num(0.0)
        whole = float(FUNCTIONS[name](torch.tensor(torch.inf)) - FUNCTIONS[name](torch.tensor(-torch.inf)))
        assert bool((span <= 1.7 * whole).all())
        assert bool((span >= 0.99 * whole).all()) or reach == 10.0


def test_a_quotient_is_bounded_where_its_divisor_stays_positive():
    centre = torch.tensor([[1.0, 3.0]]).double()
    run = {"out": lambda x: x[:, :1] / x[:, 1:], "over": lambda x: 2 / x}
    for name, function in run.items():
        motion = Reach(Program(lambda x, f=function, n=name: {n: f(x)}, centre, []), 0.5).target(name)
        corners = centre + 0.5 * torch.cartesian_prod(*[torch.linspace(-1, 1, 41).double()] * 2)
        values = function(corners)
        assert bool((values <= motion.high).all())
        assert bool((values >= motion.low).all())
        assert float((motion.high - motion.low).sum()) <= 2 * float((values.amax(0) - values.amin(0)).sum())
    (through_zero,) = Reach(Program(lambda x: {"out": 1 / x}, centre, []), 1.5).target("out").reach
    assert math.isinf(through_zero[0])


def test_the_rest_of_a_product_is_the_product_of_changes():
    one, two = torch.tensor([[2.0]]).double(), torch.tensor([[-3.0]]).double()
    rest = Product(torch.mul, one, two).rest(
        around(one, torch.full_like(one, 0.5), torch.full_like(one, 2.0)),
        around(two, torch.full_like(two, 0.25), torch.full_like(two, 4.0)),
    )
    assert (rest.low.item(), rest.high.item(), rest.rate.item()) == (-0.125, 0.125, 0.5 * 4 + 2 * 0.25)


@pytest.mark.parametrize("radius", [0.01, 0.2])
def test_euclidean_bounds_of_rests_are_tighter_and_still_hold(radius, monkeypatch):
    model, history = small_model(width=12, num_layers=3), window()
    axes = model.axes(history, None)
    (boxes,) = bound_sample(model, history, None, axes, [radius])
    monkeypatch.setattr(reach_module, "LEAST_BALL", 1)
    (balls,) = bound_sample(model, history, None, axes, [radius])
    found = attack(model_map(model, "prediction", None, axes), history, radius, largest, AttackSettings(pairs=512))
    assert found.change <= balls.change["prediction"] < boxes.change["prediction"]
    assert found.slope <= balls.rates["prediction"] < boxes.rates["prediction"]


def test_another_order_of_summation_changes_bounds_by_rounding_alone():
    model, history = small_model(), window()
    axes = model.axes(history, None)
    (before,) = bound_sample(model, history, None, axes, [0.05])
    order = torch.randperm(8, generator=torch.Generator().manual_seed(3))
    for part in (model.readout.local.weight, model.readout.local.bias, model.readout.broadcast.weight):
        part.copy_(part[order])
    model.readout.out.weight.copy_(model.readout.out.weight[:, order])
    (after,) = bound_sample(model, history, None, axes, [0.05])
    for name in before.rates:
        assert after.rates[name] == pytest.approx(before.rates[name], rel=1e-11)
        assert after.change[name] == pytest.approx(before.change[name], rel=1e-11)


@pytest.mark.parametrize("steps", [1, 4])
def test_no_attack_beats_the_bounds_of_a_rollout(steps):
    model = small_model(multiplicative_readout=True)
    found = rollout_growth(model, window(), steps, 0.002, config=AttackSettings(starts=4, steps=6, pairs=16))
    assert len(found) == steps
    for each in found:
        assert not each.beaten
        assert each.value < 1.5 * each.attacked


def test_a_rollout_of_a_steady_map_is_refused():
    signature = sk.OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1, steady=True)
    with pytest.raises(ConfigError, match="fields that evolve"):
        rollout_growth(sk.build_model("spectrakan", signature, **SMALL), torch.zeros(1, 1, 8, 1), 2, 0.1)
