"""The value at the centre of the domain: the same point for every number and grading of cells, to fourth order."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spectrakan.fields import Grid, OperatorSignature
from spectrakan.nn.axis import axes_of
from spectrakan.nn.token import centre_value


def function(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(7 * x + 0.3) + torch.exp(-2 * x)


ONE = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1)
EXACT = float(function(torch.tensor(0.5, dtype=torch.float64)))
EDGES = {
    "equal": lambda share: share,
    "graded": lambda share: (share + share**2 + share**3) / 3,
    "wavy": lambda share: share + 0.1 * torch.sin(2 * math.pi * share + 1) - 0.1 * math.sin(1) * 1.0,
}


def error(cells: int, kind: str = "equal") -> float:
    edges = EDGES[kind](torch.linspace(0, 1, cells + 1, dtype=torch.float64))
    edges = (edges - edges[0]) / (edges[-1] - edges[0])
    axes = axes_of((cells,), None if kind == "equal" else Grid.from_edges([edges]), [False])
    return abs(float(centre_value(function(axes[0].centres).view(1, 1, -1, 1), axes)) - EXACT)


@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("odd", [False, True])
def test_it_converges_with_fourth_order(kind, odd):
    sizes = np.array([16, 32, 64, 128]) + odd
    # The largest of a few neighbouring sizes: where the nodes lie around the centre differs from size to size.
    errors = [max(error(int(cells) + more, kind) for more in (0, 2, 4, 6)) for cells in sizes]
    if kind == "equal" and odd:
        assert max(errors) < 1e-14, "the centre is a cell"
        return
    slope = -np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope > 3.7, (errors, slope)


def test_even_sizes_are_as_good_as_odd_ones():
    assert error(64) < 3e-6
    assert error(64, "graded") < 10 * error(65, "graded") + 1e-9


@pytest.mark.parametrize("cells", [(4,), (5, 4), (4, 6, 5)], ids=str)
def test_cubic_fields_are_exact_on_few_cells_in_any_dimension(cells, generator):
    edges = [torch.cumsum(0.2 + torch.rand(n + 1, dtype=torch.float64, generator=generator), 0) for n in cells]
    axes = axes_of(cells, Grid.from_edges(edges), [False] * len(cells))
    powers = torch.randn(4, dtype=torch.float64, generator=generator)
    field, exact = torch.ones(1, 1, dtype=torch.float64), 1.0
    for axis in axes:
        field = field[..., None] * sum(power * axis.centres**n for n, power in enumerate(powers))
        exact *= float(sum(power * 0.5**n for n, power in enumerate(powers)))
    assert float(centre_value(field[..., None], axes)) == pytest.approx(exact, abs=1e-12)
