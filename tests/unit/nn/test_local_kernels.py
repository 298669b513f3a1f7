"""Differential and local integral layers against plain loops, and their limits under refinement."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from spectrakan.nn.axis import Axis, axes_of
from spectrakan.nn.local_kernels import DifferentialKernel, LocalIntegral, local_functions

WIDTH, BATCH = 2, 2
ENDS = {1: [(True,), (False,)], 2: [(True, True), (False, True), (False, False)], 3: [(True, False, True)]}
CASES = [((9,), ends) for ends in ENDS[1]] + [((8, 6), ends) for ends in ENDS[2]] + [((5, 4, 6), ENDS[3][0])]


def axes_for(size, periodic):
    return axes_of(size, None, periodic)


def field_of(size, generator):
    return torch.randn(WIDTH, BATCH, *size, dtype=torch.float64, generator=generator)


def value_at(u: np.ndarray, place: tuple[int, ...], periodic) -> float:
    """The field at any cell index: round a periodic axis, on along a parabola past the ends of another (one cell)."""
    for axis, (j, wraps) in enumerate(zip(place, periodic, strict=True)):
        n = u.shape[axis]
        if 0 <= j < n:
            continue
        if wraps:
            return value_at(u, (*place[:axis], j % n, *place[axis + 1 :]), periodic)
        last_three = (0, 1, 2) if j < 0 else (n - 1, n - 2, n - 3)
        ends = [value_at(u, (*place[:axis], k, *place[axis + 1 :]), periodic) for k in last_three]
        return float(np.polyval(np.polyfit([0, 1, 2], ends, 2), -1))
    return float(u[place])


@pytest.mark.parametrize(("size", "periodic"), CASES, ids=str)
def test_differential_layer_is_a_sum_of_steps_along_the_axes(size, periodic, generator):
    torch.manual_seed(0)
    layer = DifferentialKernel(WIDTH, len(size), 0.3).double()
    field = field_of(size, generator)
    found = layer(field, axes_for(size, periodic)).detach().numpy()
    weight = layer.weight.detach().numpy()
    for o, b in itertools.product(range(WIDTH), range(BATCH)):
        for place in np.ndindex(*size):
            total = 0.0
            for i in range(WIDTH):
                u = field[i, b].numpy()
                for offset in itertools.product((-1, 0, 1), repeat=len(size)):
                    w = weight[o, i][tuple(j + 1 for j in offset)]
                    here = list(place)
                    for axis, step in enumerate(offset):
                        before = value_at(u, tuple(here), periodic)
                        here[axis] += step
                        total += 0.3 * w * (value_at(u, tuple(here), periodic) - before) * size[axis]
            assert found[o, b][place] == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize(("size", "periodic"), CASES, ids=str)
def test_local_integral_is_the_sum_over_cells(size, periodic, generator):
    torch.manual_seed(0)
    radius, rings = 0.4, 3
    layer = LocalIntegral(WIDTH, len(size), radius, rings).double()
    field = field_of(size, generator)
    axes = axes_for(size, periodic)
    found = layer(field, axes).detach().numpy()
    reach = [math.ceil(radius * n) for n in size]
    offsets = list(itertools.product(*[range(-r, r + 1) for r in reach]))
    functions = np.array([
        plain_functions([j / n for j, n in zip(offset, size, strict=True)], radius, rings) for offset in offsets
    ])  # fmt: skip
    functions = functions / functions.sum(0)
    kernel = np.einsum("zf,fio->zoi", functions, layer.weight.detach().numpy())
    expected = np.zeros(found.shape)
    for place in np.ndindex(*size):
        for number, offset in enumerate(offsets):
            source = [x - z for x, z in zip(place, offset, strict=True)]
            there = [within(y, n, wraps) for y, n, wraps in zip(source, size, periodic, strict=True)]
            expected[(slice(None), slice(None), *place)] += kernel[number] @ field[(..., *there)].numpy()
    assert np.abs(found - expected).max() < 1e-12


def within(cell: int, cells: int, wraps: bool) -> int:
    """The cell that says what the field is at an index past the ends: round the axis, or its mirror image."""
    if wraps:
        return cell % cells
    return -1 - cell if cell < 0 else 2 * cells - 1 - cell if cell >= cells else cell


def plain_functions(z: list[float], radius: float, rings: int) -> list[float]:
    """e_0, then ring by ring, axis by axis, plus before minus."""
    r = math.sqrt(sum(x * x for x in z))
    step = radius / rings
    values = [max(0.0, 1 - r / step)]
    for ring in range(1, rings):
        hat = max(0.0, 1 - abs(r - ring * step) / step)
        for x in z:
            values += [hat * max(0.0, sign * x / r) ** 2 if r else 0.0 for sign in (1, -1)]
    return values


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_local_functions_are_many_and_make_a_cone(dims):
    offsets = [torch.linspace(-0.5, 0.5, 21, dtype=torch.float64)] * dims
    functions = local_functions(offsets, 0.4, 4)
    assert len(functions) == 1 + 2 * dims * (4 - 1)
    distance = sum(x**2 for x in torch.meshgrid(*offsets, indexing="ij")).sqrt()
    inner = distance <= 0.3
    assert torch.allclose(functions.sum(0)[inner], torch.ones(()).double(), atol=1e-12)
    assert float(functions.sum(0)[distance >= 0.4].abs().max()) < 1e-15


def test_differences_on_gradually_stretched_cells_are_derivatives():
    torch.manual_seed(0)
    layer = DifferentialKernel(1, 1, 1.0).double()
    slope = (layer.weight[0, 0, 2] - layer.weight[0, 0, 0]).item()
    errors = []
    for cells in (64, 256):
        place = torch.linspace(0, 1, cells + 1, dtype=torch.float64)
        edges = (place + 0.5 * place**2) / 1.5
        axis = Axis((edges[1:] + edges[:-1]) / 2, edges, edges.diff(), periodic=False, uniform=False)
        found = layer(torch.sin(3 * axis.centres).view(1, 1, -1), (axis,))[0, 0]
        errors.append((found - slope * 3 * torch.cos(3 * axis.centres)).abs().max().item())
    assert np.log(errors[0] / errors[1]) / np.log(4) > 0.9
