"""Entries of a node taken together: budgets, norms from products, and narrow results that all of them depend on."""

from __future__ import annotations

import pytest
import torch

from spectrakan.theory import reach as reach_module
from spectrakan.theory.norms import norm_of_gram
from spectrakan.theory.program import Program
from spectrakan.theory.reach import Reach, auctioned


def spent(values: torch.Tensor, price: torch.Tensor, budget: float) -> float:
    """The largest sum that a budget buys at prices by share: the best value for its price first."""
    best = 0.0
    for place in (values / price).argsort(descending=True):
        share = min(1.0, max(0.0, budget / float(price[place])))
        best, budget = best + share * float(values[place]), budget - share * float(price[place])
    return best


@pytest.mark.parametrize("seed", range(20))
def test_a_budget_bounds_the_best_choice_and_comes_near_it(seed):
    source = torch.Generator().manual_seed(seed)
    values, price = torch.rand(2, 64, dtype=torch.float64, generator=source) + 1e-3
    budget = float(price.sum()) * 10 ** (-2 * float(torch.rand((), generator=source)))
    limits = values.view(8, 8).sum(0)[None]
    found = float(auctioned(values[None], price[None], price[None], limits, torch.tensor(budget).double()))
    best = spent(values, price, budget)
    assert best <= found * (1 + 1e-12)
    assert found <= min(2 * best + 0.05 * float(values.sum()), float(values.sum()) * (1 + 1e-12))


@pytest.mark.parametrize("seed", range(20))
def test_no_shares_of_squared_prices_exceed_the_bound(seed):
    source = torch.Generator().manual_seed(seed)
    values, price = torch.rand(2, 64, dtype=torch.float64, generator=source)
    shares = torch.rand(4096, 64, dtype=torch.float64, generator=source) * values / (price + 1e-3)
    shares = shares / shares.amax(1, keepdim=True)
    budget = 0.1 * price.sum()
    cost = (shares.square() * price).sum(1)
    shares = shares * (budget / cost).sqrt().clamp_max(1.0)[:, None]
    limits = values.view(8, 8).sum(0)[None]
    found = float(auctioned(values[None], torch.zeros_like(price)[None], price[None], limits, budget))
    assert float((shares * values).sum(1).amax()) <= found <= float(values.sum()) * (1 + 1e-12)


def test_the_norm_from_products_lies_above_the_largest_singular_value():
    rows = torch.randn(5, 6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = torch.linalg.matrix_norm(rows, 2)
    found = norm_of_gram(rows @ rows.mT)
    assert bool((found >= exact).all())
    assert torch.allclose(found, exact, rtol=1e-8)
    assert bool(norm_of_gram(torch.full((2, 2), torch.nan).double()).isinf())


def test_a_result_is_narrow_only_if_nothing_passes_it_by():
    source = torch.Generator().manual_seed(0)
    first, second = (torch.randn(*shape, dtype=torch.float64, generator=source) for shape in ((3, 8), (12, 3)))
    centre = torch.randn(1, 8, dtype=torch.float64, generator=source)

    def narrow(run) -> int | None:
        program = Program(lambda x: {"out": torch.nn.functional.gelu(run(x))}, centre, [])
        leaf = centre.expand(4, 8).clone().requires_grad_()
        program.values(leaf)
        found = program.narrowest(program.calls[0][0], [leaf])
        return None if found is None else found[0].numel() // 4

    assert narrow(lambda x: (x @ first.T) @ second.T) == 3
    assert narrow(lambda x: (x @ first.T) @ second.T + x[:, :1]) is None
    assert narrow(lambda x: (x @ first.T)[:, :1] @ second.T[:1] + (x @ first.T)[:, 1:] @ second.T[1:]) is None
    assert narrow(lambda x: torch.cat([*(x @ first.T).chunk(3, dim=1)], dim=1) @ second.T) == 3


@pytest.mark.parametrize("radius", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_no_input_exceeds_the_bounds_of_narrow_layers_which_are_never_looser(radius, activation, monkeypatch):
    source = torch.Generator().manual_seed(3)
    shapes = (12, 60), (200, 12), (12, 200), (200, 12), (2, 200)
    weights = [torch.randn(*shape, dtype=torch.float64, generator=source) / shape[1] ** 0.5 for shape in shapes]
    centre, function = (
        torch.randn(1, 60, dtype=torch.float64, generator=source),
        getattr(torch.nn.functional, activation),
    )

    def run(x):
        hidden = function((x @ weights[0].T) @ weights[1].T)
        return {"out": function((hidden @ weights[2].T) @ weights[3].T) @ weights[4].T}

    rows = Reach(Program(run, centre, []), radius).target("out")
    monkeypatch.setattr(reach_module, "LEAST_BALL", 1)
    joint = Reach(Program(run, centre, []), radius).target("out")
    moved = torch.rand(20_000, 60, dtype=torch.float64, generator=source) * 2 - 1
    moved[:10_000] = moved[:10_000].sign()
    values = run(centre + radius * moved)["out"]
    assert bool((values <= joint.high).all())
    assert bool((values >= joint.low).all())
    assert bool((joint.reach <= rows.reach * (1 + 1e-9)).all())
