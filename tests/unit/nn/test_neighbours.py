"""The local path against its definition, its gradients, and the same function on finer cells."""

from __future__ import annotations

import pytest
import torch

from spectrakan.nn.axis import uniform_axis
from spectrakan.nn.neighbours import Neighbours
from spectrakan.numerics.resample import interpolation_matrix


def _local(width: int, reach: float, generator: torch.Generator) -> Neighbours:
    local = Neighbours(width, reach).double()
    local.weight.data = torch.randn(width, dtype=torch.float64, generator=generator)
    return local


def _by_definition(local: Neighbours, field: torch.Tensor, axes) -> torch.Tensor:
    """w_c (v_c(x + d_c) - v_c(x)), every neighbour by a matrix of its own, channel by channel."""
    directions = [(place, sign) for place in range(len(axes)) for sign in (1, -1)]
    result = torch.empty_like(field)
    for channel, values in enumerate(field):
        place, sign = directions[channel * len(directions) // field.shape[0]]
        axis = axes[place]
        seen_from = axis.centres + sign * local.reach
        matrix = interpolation_matrix(seen_from, axis.cells, periodic=axis.periodic)
        seen = torch.tensordot(matrix, values, dims=([1], [place + 1])).movedim(0, place + 1)
        result[channel] = local.weight[channel] * (seen - values)
    return result


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("reach", [1 / 8, 1 / 16, 0.3 / 8, 0.2])
def test_every_channel_sees_one_neighbour_at_the_distance_asked_for(reach, periodic, generator):
    local = _local(8, reach, generator)
    axes = [uniform_axis(8, periodic), uniform_axis(7, not periodic)]
    field, start = torch.randn(2, 8, 3, 8, 7, dtype=torch.float64, generator=generator)
    expected = start + _by_definition(local, field, axes)
    assert (local(start.clone(), field, axes) - expected).abs().max() < 1e-12


@pytest.mark.parametrize("reach", [1 / 8, 0.3 / 8])
def test_the_written_out_gradients_are_right(reach, generator):
    local = _local(4, reach, generator)
    axes = [uniform_axis(6, periodic=False), uniform_axis(5, periodic=True)]
    field, start = torch.randn(2, 4, 2, 6, 5, dtype=torch.float64, generator=generator)

    def path(start, field, weight):
        return torch.func.functional_call(local, {"weight": weight}, (start * 1.0, field, axes))

    inputs = [tensor.detach().clone().requires_grad_() for tensor in (start, field, local.weight)]
    assert torch.autograd.gradcheck(path, inputs)
    assert torch.autograd.gradgradcheck(path, inputs)


def test_finer_cells_give_the_same_function(generator):
    """A smooth field sampled on 32 and on 64 cells has the same local part where both have a centre nearby."""
    local = _local(2, 1 / 16, generator)

    def on(cells: int) -> torch.Tensor:
        axis = uniform_axis(cells, periodic=True)
        field = torch.sin(2 * torch.pi * axis.centres).expand(2, 1, cells).contiguous()
        return local(torch.zeros_like(field), field, [axis])

    coarse, fine = on(32), on(64).unflatten(-1, (32, 2)).mean(-1)
    assert (coarse - fine).abs().max() < 0.01 * coarse.abs().max()


def test_the_path_is_bounded_on_every_grid(generator):
    local = _local(4, 1 / 16, generator)
    for cells in (8, 16, 40, 128):
        axes = [uniform_axis(cells, periodic=False)] * 2
        field = torch.randint(0, 2, (4, 1, cells, cells), generator=generator).double() * 2 - 1
        largest = local(torch.zeros_like(field), field, axes).abs().amax((1, 2, 3))
        assert (largest <= 2 * local.weight.abs() + 1e-12).all()
