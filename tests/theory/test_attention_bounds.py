"""Two-cell attention solved by hand, boxes of softmax weights, and the theorem's constants."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import around
from scipy.optimize import linprog

from spectrakan.nn.axis import uniform_axis
from spectrakan.nn.modulation import GlobalModulation
from spectrakan.theory.attack import AttackSettings, attack, euclid
from spectrakan.theory.program import Program
from spectrakan.theory.reach import Reach
from spectrakan.theory.rules import WeightBox
from spectrakan.theory.theorem import Constants


def two_cells(query: float, features: tuple[float, float], radius: float) -> float:
    """The bound for one channel, key and value one, a fixed query, features that are the inputs themselves."""
    gml = GlobalModulation(1, 1, 1).double().requires_grad_(False)
    gml.query.weight.fill_(1.0)
    gml.query.bias.zero_()
    gml.key.fill_(1.0)
    gml.value.fill_(1.0)
    token = torch.tensor([[query]]).double()

    def modulation(cells: torch.Tensor) -> torch.Tensor:
        return gml(token.expand(len(cells), -1), cells[None], [uniform_axis(2, False)])

    return rate(modulation, torch.tensor([features]).double(), radius)


def rate(function, centre: torch.Tensor, radius: float) -> float:
    """The bound of a vector's rate in the ball around `centre` `(1, inputs)`."""
    reach = Reach(Program(lambda inputs: {"out": function(inputs)}, centre, []), radius)
    return float(reach.target("out", keep=True).sizes()[1])


def slope(query: float, features: tuple[float, float]) -> float:
    """|dA/df_1| + |dA/df_2| of A = (f_1 e^{q f_1} + f_2 e^{q f_2}) / (e^{q f_1} + e^{q f_2}), by hand.

    With p = sigmoid(q (f_1 - f_2)) and D = q p (1 - p) (f_1 - f_2): dA = (p + D) df_1 + (1 - p - D) df_2.
    """
    gap = features[0] - features[1]
    share = 1 / (1 + math.exp(-query * gap))
    turn = query * share * (1 - share) * gap
    return abs(share + turn) + abs(1 - share - turn)


@pytest.mark.parametrize(
    ("query", "features"), [(0.0, (1.0, -2.0)), (1.5, (0.4, 0.1)), (3.0, (1.0, -1.0)), (-2.0, (0.3, 2.0))]
)
def test_two_cells_in_a_tiny_ball_come_down_to_the_derivative_by_hand(query, features):
    assert two_cells(query, features, 1e-9) == pytest.approx(slope(query, features), rel=1e-6)


@pytest.mark.parametrize("radius", [0.01, 0.1, 0.5])
def test_no_pair_of_two_cells_beats_the_bound(radius, generator):
    query, features = 1.5, (0.4, -0.3)
    bound = two_cells(query, features, radius)
    pairs = radius * (2 * torch.rand(2, 10_000, 2, generator=generator).double() - 1) + torch.tensor(features)
    out = [(points * (query * points).softmax(1)).sum(1) for points in pairs]
    quotients = (out[0] - out[1]).abs() / (pairs[0] - pairs[1]).abs().amax(1)
    assert float(quotients.max()) <= bound
    assert bound <= 20 * float(quotients.max())


def random_box(cells: int, seed: int, sharpness: float) -> tuple[torch.Tensor, torch.Tensor, WeightBox]:
    """Logits, how far each can move once the mean under their softmax is taken off, and the box of their softmax."""
    source = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(cells, generator=source).double()
    moved = torch.rand(cells, generator=source).double() ** 3
    moved = moved + (moved * logits.softmax(0)).sum()
    return logits, moved, WeightBox.of(around(logits[None, None], moved[None, None], moved[None, None]))


@settings(max_examples=40, deadline=None)
@given(cells=st.integers(1, 12), seed=st.integers(0, 10**6), sharpness=st.floats(0, 30))
def test_softmax_never_leaves_its_box_and_reaches_the_ends(cells, seed, sharpness):
    logits, moved, box = random_box(cells, seed, sharpness)
    source = torch.Generator().manual_seed(seed + 1)
    ways = 2 * torch.rand(2000, cells, generator=source).double() - 1
    common = 5 * torch.randn(4000, 1, generator=source).double()
    moves = moved * torch.cat([ways, ways.sign()])
    weights = (logits + moves + common).softmax(1)
    assert bool((weights <= box.high * (1 + 1e-12)).all())
    assert bool((weights >= box.low * (1 - 1e-12)).all())
    start = logits.softmax(0)
    # Bounds of changes are for moves with mean zero; those whose centred form leaves the intervals do not count.
    moves = moves - (moves * start).sum(1, keepdim=True)
    moves = moves * (moved / moves.abs().clamp_min(1e-300)).amin(1, keepdim=True).clamp_max(1.0)
    weights = (logits + moves).softmax(1)
    assert bool(((weights - start).abs() <= box.change * (1 + 1e-9) + 1e-15).all())
    assert bool(((weights - start * (1 + moves)).abs() <= box.beyond * (1 + 1e-9) + 1e-15).all())
    alone = 2 * torch.eye(cells).double() - 1
    assert torch.allclose((logits + moved * alone).softmax(1).diagonal(), box.high[0, 0], rtol=1e-9)
    assert torch.allclose((logits - moved * alone).softmax(1).diagonal(), box.low[0, 0], rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(cells=st.integers(1, 12), seed=st.integers(0, 10**6), sharpness=st.floats(0, 10))
def test_the_greedy_mean_is_the_optimum_of_the_linear_programme(cells, seed, sharpness):
    _, _, box = random_box(cells, seed, sharpness)
    rates = torch.rand(cells, generator=torch.Generator().manual_seed(seed)).double()
    ends = list(zip(box.low.flatten().tolist(), box.high.flatten().tolist(), strict=True))
    best = linprog(-rates.numpy(), A_eq=np.ones((1, cells)), b_eq=[1.0], bounds=ends)
    assert float(box.mean(rates[None, None, :, None])) == pytest.approx(-best.fun, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), sharpness=st.sampled_from([0.3, 3.0, 30.0]), radius=st.floats(1e-4, 0.5))
def test_no_attack_on_random_attention_beats_the_bound(seed, sharpness, radius):
    """Features and token are the inputs themselves: A is a closed expression of 3 x 6 + 2 numbers."""
    source = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        gml = GlobalModulation(3, 2, 4).double().requires_grad_(False)
    gml.query.weight.mul_(sharpness)
    features, token = torch.randn(3, 6, generator=source).double(), torch.randn(2, generator=source).double()
    axes = [uniform_axis(6, False)]

    def modulation(rows: torch.Tensor) -> torch.Tensor:
        return gml(rows[:, 18:], rows[:, :18].unflatten(1, (3, 6)).movedim(0, 1).contiguous(), axes)

    centre = torch.cat([features.flatten(), token])[None]
    bound = rate(modulation, centre, radius)
    found = attack(modulation, centre, radius, euclid, AttackSettings(starts=16, steps=8, pairs=256, seed=seed))
    assert found.slope <= bound
    jacobian = torch.autograd.functional.jacobian(lambda row: modulation(row[None])[0], centre[0])
    if radius < 1e-3:
        assert bound <= 1.5 * float(jacobian.abs().sum(1).norm()) + 1e-6


@pytest.mark.parametrize("sharpness", [0.3, 3.0, 10.0])
@pytest.mark.parametrize("radius", [0.01, 0.1, 0.5])
def test_linear_maps_of_attention_stay_in_their_intervals_which_count_channels_together(sharpness, radius):
    """A head's mean of 8 channels, mixed: channels one by one cannot all be at their ends with the same weights."""
    source = torch.Generator().manual_seed(0)
    mixed = torch.randn(8, 5, generator=source).double()
    centre = torch.randn(1, 20 * 9, generator=source).double()

    def run(rows: torch.Tensor) -> dict[str, torch.Tensor]:
        scores, values = (sharpness * rows[:, :20])[:, None], rows[:, 20:].unflatten(1, (20, 8))
        return {"out": (scores.softmax(-1) @ values)[:, 0] @ mixed}

    reach = Reach(Program(run, centre, []), radius)
    motion = reach.target("out")
    ways = 2 * torch.rand(4000, 180, generator=source).double() - 1
    values = run(centre + radius * torch.cat([ways, ways.sign()]))["out"]
    assert bool((values <= motion.high).all())
    assert bool((values >= motion.low).all())
    reach._weights[0] = replace(reach._weights[0], along=None)
    apart = reach.target("out")
    assert bool((motion.high <= apart.high).all())
    if sharpness * radius >= 1:
        assert float((motion.high - motion.low).sum()) < 0.8 * float((apart.high - apart.low).sum())


def test_sharp_attention_is_bounded_by_its_boxes_and_not_by_suprema():
    """One cell takes all weight over the whole ball, so values and scores of the others do not matter."""
    query, features, radius = 200.0, (3.0, -3.0), 0.5
    bound = two_cells(query, features, radius)
    # Suprema give 1 + q |f_1 - f_2| / 2 times it; the maximum itself moves at rate one.
    assert bound == pytest.approx(1.0, abs=1e-6)


@given(
    sizes=st.tuples(*[st.floats(0.01, 5)] * 8),
    width=st.integers(1, 64),
)
def test_the_papers_constant_is_larger_by_the_exponential(sizes, width):
    names = ("M_q", "M_k", "M_v", "L_k", "L_v", "Lip_q", "L_KAN", "L_P")
    constants = Constants(**dict(zip(names, sizes, strict=True)), divisor=width**0.5)
    assert math.log(constants.covariance()) <= constants.log_paper() - 2 * constants.M_s + 1e-9
    if constants.M_s < 50:
        paper = math.exp(2 * constants.M_s) * constants.covariance()
        paper += math.exp(4 * constants.M_s) * constants.M_v * constants.S
        assert constants.log_paper() == pytest.approx(math.log(paper), rel=1e-9)
