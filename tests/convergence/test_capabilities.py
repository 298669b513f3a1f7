"""The table of capabilities on other grids holds: each order is measured, each claim is attacked."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from small_models import SMALL

import spectrakan as sk
from spectrakan.errors import ShapeError
from spectrakan.models import MODELS

SENSORS = {
    "deepokan": {"sensors": 3},
    "deeponet": {"sensors": 3},
    "cvit": {"cells": 3, "patch": 1},
}
"""So few that their cells are unions of the grid's, and no kinks: else the error is as small, but falls unevenly."""
SAME = [name for name, facts in MODELS.items() if facts.order is not None]
ODD = {1: [(27,), (81,), (243,), (729,)], 2: [(15, 21), (45, 63), (135, 189)]}
"""Odd and not square; each is three times the one before, so that the cell centres of the first are in all."""


def built(name: str, dims: int, boundary: str, **choices) -> torch.nn.Module:
    torch.manual_seed(0)
    facts = sk.OperatorSignature(
        space_dims=dims,
        history=1,
        in_channels=2,
        out_channels=2,
        boundary=(boundary,) * dims,
        steady=name != "persistence",
    )
    model = sk.build_model(name, facts, **{**SMALL.get(name, {}), **choices}).double().eval()
    coarse = waves(ODD[dims][0]) if dims in ODD else waves((5,) * dims)
    model.fit_windows(
        [sk.Window(coarse * size, coarse.roll(shift, 2)) for size, shift in ((1.0, 1), (-0.6, 2))], units=False
    )
    return model


def waves(cells: tuple[int, ...]) -> torch.Tensor:
    """Two fields of the two longest waves along each axis, `(1, 1, *cells, 2)`."""
    mesh = torch.meshgrid(*[(torch.arange(n, dtype=torch.float64) + 0.5) / n for n in cells], indexing="ij")
    along = [torch.sin(2 * math.pi * x + k) + 0.5 * torch.cos(4 * math.pi * x + 0.3 * k) for k, x in enumerate(mesh)]
    return torch.stack([torch.stack(along).sum(0), torch.stack(along).prod(0)], dim=-1)[None, None]


def at_centres(output: torch.Tensor, cells: tuple[int, ...]) -> torch.Tensor:
    """The output at the cell centres of a grid whose cells are odd multiples of its own."""
    for axis, count in enumerate(cells, start=1):
        ratio = output.shape[axis] // count
        output = output.index_select(axis, torch.arange(ratio // 2, output.shape[axis], ratio))
    return output


@torch.no_grad()
def relative_changes(model: torch.nn.Module, sizes: list[tuple[int, ...]]) -> list[float]:
    """From each grid to the next: root mean square over the spread of the last answer."""
    answers = [at_centres(model(waves(cells)), sizes[0]) for cells in sizes]
    spread = max(float(answers[-1].std()), 1e-12)
    return [float((fine - coarse).square().mean().sqrt()) / spread for coarse, fine in pairwise(answers)]


@pytest.mark.parametrize("boundary", ["periodic", "wall"])
@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("name", SAME)
def test_one_set_of_weights_is_one_operator_to_the_order_of_the_table(name, dims, boundary):
    changes = relative_changes(built(name, dims, boundary, **SENSORS.get(name, {})), ODD[dims])
    order = MODELS[name].order
    if changes[0] > 1e-4:  # else the modes of the waves are nearly all there is
        slope = -float(np.polyfit(np.arange(len(changes)), np.log(changes), 1)[0]) / math.log(3)
        assert slope > order - (0.45 if dims == 2 else 0.25), (changes, slope)
    # From 81 to 243 cells, and from 45 x 63 to three times that.
    assert changes[1] < {1: 0.15, 2: 0.03}[order], changes


@pytest.mark.parametrize("name", SAME)
def test_twice_the_resolution_gives_the_same_answer_to_a_few_hundredths(name):
    """As it is asked most often: equal even sizes, the answers as means over the coarse cells; published sensors."""
    model = built(name, 1, "periodic")
    with torch.no_grad():
        coarse, fine = model(waves((128,))), model(waves((256,))).unflatten(1, (128, 2)).mean(2)
    change = float((fine - coarse).square().mean().sqrt() / fine.std())
    assert change < (0.05 if MODELS[name].order == 1 or name == "deepokan" else 0.01), change


def test_without_its_padding_fno_is_of_second_order():
    changes = relative_changes(built("fno", 1, "wall", padding=0), ODD[1])
    assert math.log(changes[1] / changes[2], 3) > 1.7, changes


@torch.no_grad()
def test_what_only_runs_changes_its_meaning():
    """A quarter of the domain is too far for stencils of fine cells."""
    model = built("unet", 1, "wall", noise_level=0.0)  # the output filter is one operator on all grids
    changes = relative_changes(model, ODD[1])
    slope = -float(np.polyfit(np.arange(len(changes)), np.log(changes), 1)[0]) / math.log(3)
    assert slope < 1.2 or changes[1] > 0.03, changes
    for cells, reached in ((64, True), (2048, False)):
        field = waves((cells,))
        other = field.clone()
        other[:, :, : cells // 4] += 1.0
        change = (model(other) - model(field))[:, cells // 2 :]
        assert bool((change.abs() > 1e-9).any()) == reached


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_refuses_what_it_cannot_take(name):
    model = built(name, 2, "wall")
    for cells in ((3, 8), (8, 2)):
        with pytest.raises(ShapeError, match="at least 4 cells along each axis"):
            model(waves(cells))
    with pytest.raises(ShapeError, match=r"expected an input of shape \(batch, 1, \*, \*, 2\)"):
        model(waves((8,)))
    with pytest.raises(ShapeError, match="the grid has"):
        model(waves((8, 8)), grid=sk.Grid.uniform((8, 9)))


@pytest.mark.parametrize("cells", [(4, 5, 7), (9, 4, 6)])
@pytest.mark.parametrize("name", sorted(MODELS))
@torch.no_grad()
def test_boxes_of_any_shape_are_taken_in_three_dimensions(name, cells):
    model, field = built(name, 3, "wall"), waves(cells)
    answer = model(field)
    assert answer.shape == (1, *cells, 2)
    assert bool(torch.isfinite(answer).all())
    if name != "climatology":
        assert not torch.allclose(model(1.5 * field), answer)
