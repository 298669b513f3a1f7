"""Rules of the summary: no inputs of a ball exceed them, they are near what happens, and finite in every ball."""

from __future__ import annotations

import math

import pytest
import torch
from motions import around

import spectrakan as sk
from spectrakan.nn.axis import axes_of
from spectrakan.nn.summary import EPSILON, FAINT, ridge, turns
from spectrakan.nn.token import root_mean_square, space_mean
from spectrakan.theory.attack import AttackSettings, attack, largest
from spectrakan.theory.parts import model_map
from spectrakan.theory.program import Program
from spectrakan.theory.reach import Reach
from spectrakan.theory.rules import JointMotion, Motion, Rule
from spectrakan.theory.sample_bounds import bound_sample
from spectrakan.theory.summary_rules import Ridge, Spread, Turns

SIZES = [1e-5, 1e-3, 0.03, 0.3, 10.0]


def inputs_near(source, centres, size, count):
    """Samples `(count, ..)` within boxes of random reaches around each centre, many at corners; and the motions."""
    motions, points = [], []
    for centre in centres:
        reach = size * torch.rand(centre.shape, generator=source, dtype=torch.float64)
        ways = 2 * torch.rand(count, *centre.shape[1:], generator=source, dtype=torch.float64) - 1
        ways[: count // 2] = ways[: count // 2].sign()
        motions.append(around(centre, reach, torch.rand_like(reach)))
        points.append(centre + ways * reach)
    return motions, points


def check(rule: Rule, function, motions, points, paces=None) -> float:
    """Hold values and derivatives against the rest; the largest share of a bound that was reached."""
    rule.relax(*motions)
    rest = rule.rest(*motions)
    moved = [point - motion.centre for point, motion in zip(points, motions, strict=True)]
    error = function(*points) - rule.out - rule.linear(*moved)
    slack = 1e-10 * (1 + error.abs())
    assert bool((error <= rest.high + slack).all())
    assert bool((error >= rest.low - slack).all())
    if paces is None:
        paces = [motion.rate * torch.randn_like(point).sign() for motion, point in zip(motions, points, strict=True)]
    _, slopes = torch.autograd.functional.jvp(function, tuple(points), tuple(paces))
    turned = slopes - rule.linear(*paces)
    assert bool((turned.abs() <= rest.rate * (1 + 1e-9) + 1e-9).all())
    for each in (rest.high, rest.low, rest.rate):
        assert bool(each.isfinite().all())
    return float((error.abs() / torch.maximum(rest.high, -rest.low).clamp_min(1e-12)).amax())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spread", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_system_in_the_ball_exceeds_the_bounds_of_its_solution(size, spread, seed):
    """Columns that nearly depend on each other too: the last is the first, off by `spread`."""
    source = torch.Generator().manual_seed(seed)
    columns = torch.randn(1, 12, 2, 3, generator=source, dtype=torch.float64)
    columns[..., 2] = columns[..., 0] + spread * columns[..., 2]
    columns = columns * torch.tensor([1.0, 0.1, 1.0])
    right = torch.einsum("brfn,n->brf", columns, torch.tensor([0.5, -2.0, 1.0]).double())
    right = right + 0.05 * torch.randn(right.shape, generator=source, dtype=torch.float64)
    motions, points = inputs_near(source, (columns, right), size, 400)
    rule = Ridge(columns, right)
    share = check(rule, ridge, motions, points)
    assert share <= 1
    if spread == 1.0 and size <= 1e-3:
        assert share > 1e-3
    rest = rule.rest(*motions)
    cap = (right.norm(dim=1) + motions[1].reach.norm(dim=1)) / (2 * EPSILON)
    if not bool(rule.turning.any()):
        assert bool((rest.high + rule.out <= 1.0001 * cap[..., None]).all())


@pytest.mark.parametrize("size", [1e-5, 1e-3, 0.01, 0.05])
@pytest.mark.parametrize("spread", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_input_exceeds_the_bounds_of_a_system_whose_numbers_move_together(size, spread, seed):
    source = torch.Generator().manual_seed(seed)
    columns = torch.randn(1, 12, 2, 3, generator=source, dtype=torch.float64)
    columns[..., 2] = columns[..., 0] + spread * columns[..., 2]
    right = columns.sum(-1) + 0.05 * torch.randn(1, 12, 2, generator=source, dtype=torch.float64)
    maps = [torch.randn(*part.shape[1:], 8, generator=source, dtype=torch.float64) / 8 for part in (columns, right)]
    steep = maps[0].abs().sum(-1), maps[1].abs().sum(-1)
    motions = []
    for centre, each, rows in zip((columns, right), maps, steep, strict=True):
        beyond = torch.zeros(*centre.shape, 2, dtype=torch.float64)
        joint = JointMotion(each[None], beyond, size)
        motions.append(Motion(centre, centre - size * rows, centre + size * rows, rows[None], joint))
    moved = size * (2 * torch.rand(4000, 8, generator=source, dtype=torch.float64) - 1)
    moved[:2000] = size * moved[:2000].sign()
    steps, paces = (
        [torch.einsum("...i,bi->b...", each, ways) for each in maps] for ways in (moved, moved.flip(0).sign())
    )
    rule = Ridge(columns, right)
    share = check(rule, ridge, motions, [columns + steps[0], right + steps[1]], paces)
    if spread == 1.0 and size <= 1e-3:  # within a small factor of what corners reach
        assert share > 0.1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("height", [0.0, 1e-3, FAINT, 1.0])
def test_no_wave_in_the_ball_exceeds_the_bounds_of_its_turns(size, height):
    source = torch.Generator().manual_seed(1)
    centres = height * torch.randn(2, 1, 2, 2, 3, generator=source, dtype=torch.float64)
    motions, points = inputs_near(source, centres.unbind(), size, 2000)
    rule = Turns(*centres.unbind())
    assert check(rule, turns, motions, points) > 1e-2
    rest = rule.rest(*motions)
    assert bool((rest.high <= 2.0001).all())
    assert bool((rest.rate <= 1.5 / FAINT * torch.hypot(*(each.rate.norm(dim=1) for each in motions))).all())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("height", [0.0, 1e-2, 1.0])
def test_no_field_in_the_ball_exceeds_the_bounds_of_its_spread(size, height):
    source = torch.Generator().manual_seed(2)
    axes = axes_of((16,), None, [True])
    centre = height * torch.randn(1, 1, 16, 2, generator=source, dtype=torch.float64)

    def function(x):
        return root_mean_square(x, axes)

    rule = Spread(function, lambda x: space_mean(x, axes), centre)
    motions, points = inputs_near(source, (centre,), size, 500)
    assert check(rule, function, motions, points) > 0.05


def test_sizes_of_groups_take_what_moves_together_into_account():
    """Coefficients of one input in opposite rows cannot all be large; the norm by rows does not know it."""
    source = torch.Generator().manual_seed(3)
    matrix = torch.linalg.qr(torch.randn(16, 16, generator=source, dtype=torch.float64)).Q
    columns = torch.randn(1, 16, 1, 1, generator=source, dtype=torch.float64)

    def run(x):
        return {"out": ridge(columns + (x @ matrix.T)[:, :, None, None], x[:, :, None] + x[:, :1, None])}

    reach = Reach(Program(run, torch.zeros(1, 16).double(), []), 0.01)
    motion, _ = reach._found(0, 0, keep=True)
    joint, by_rows = motion.sizes(1)[0], motion.reach.norm(dim=1)
    assert 0.01 * math.sqrt(16) <= float(joint) * (1 + 1e-9)
    assert float(joint) < 0.5 * float(by_rows)


@pytest.mark.parametrize(("dims", "radius"), [(1, 0.01), (1, 0.1), (1, 30.0), (2, 0.1)])
def test_a_model_with_the_dynamics_of_its_history_has_finite_bounds_in_every_ball(dims, radius):
    signature = sk.OperatorSignature(
        space_dims=dims, history=3, in_channels=1, out_channels=1, boundary=("periodic",) * dims
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sizes = {"width": 4, "num_modes": 3, "num_layers": 2, "token_width": 4, "attention_width": 4}
        model = sk.build_model("spectrakan", signature, readout_width=8, **sizes)
        for layer in (model.conditioning.film, model.conditioning.transport):
            torch.nn.init.normal_(layer.weight, std=0.2)
    model = model.double().eval().requires_grad_(False)
    cells = (12,) if dims == 1 else (5, 4)
    angle = torch.linspace(0, 2, math.prod(cells)).double().view(cells)
    history = torch.stack([(3 * angle - 0.2 * frame).sin() for frame in range(3)])[None, ..., None]
    axes = model.axes(history, None)
    (bounds,) = bound_sample(model, history, None, axes, [radius])
    for name in ("token", "modulation", "prediction"):
        assert math.isfinite(bounds.change[name])
        assert math.isfinite(bounds.rates[name])
    found = attack(
        model_map(model, "prediction", None, axes),
        history,
        radius,
        largest,
        AttackSettings(starts=4, steps=6, pairs=64),
    )
    assert found.change <= bounds.change["prediction"]
    assert found.slope <= bounds.rates["prediction"]
