"""Two-cell attention solved by hand, and the theorem's constants."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.nn.axis import uniform_axis
from spectrakan.nn.modulation import GlobalModulation
from spectrakan.theory.attention_bounds import head_bound
from spectrakan.theory.signal import Signal, Stage
from spectrakan.theory.tangent import Tangent, identity
from spectrakan.theory.theorem import Constants


def two_cells(query: float, features: tuple[float, float], radius: float) -> float:
    """The bound for one channel, key and value one, a fixed query, features that are the inputs themselves."""
    gml = GlobalModulation(1, 1, 1).double().requires_grad_(False)
    gml.query.weight.fill_(1.0)
    gml.query.bias.zero_()
    gml.key.fill_(1.0)
    gml.value.fill_(1.0)
    stage = Stage(radius)
    token = Signal(torch.tensor([query]).double(), Tangent(torch.zeros(1, 2).double(), None, None, (1,)), stage)
    cells = Signal(torch.tensor([features]).double(), identity((1, 2)), stage)
    return float(head_bound(gml, 0, token, cells, [uniform_axis(2, False)]).bound)


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
