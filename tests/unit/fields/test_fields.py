"""Grids know their cells; trajectories and signatures refuse what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories


@given(cells=st.lists(st.integers(2, 9), min_size=1, max_size=3), low=st.floats(-5, 5), length=st.floats(0.1, 10))
def test_volumes_sum_to_one_and_the_box_is_known(cells, low, length):
    grid = Grid.uniform(cells, [(low, low + length)] * len(cells))
    assert grid.shape == tuple(cells)
    assert abs(float(grid.volumes().sum()) - 1) < 1e-12
    assert grid.is_uniform()
    for axis, n in zip(grid.unit_coordinates(), cells, strict=True):
        assert torch.allclose(axis, (torch.arange(n, dtype=torch.float64) + 0.5) / n)


def test_a_grid_from_centres_finds_the_faces_between():
    grid = Grid.from_centres([torch.tensor([0.0, 1.0, 3.0])])
    assert grid.edges[0].tolist() == [-0.5, 0.5, 2.0, 4.0]
    assert not grid.is_uniform()
    assert torch.allclose(grid.weights[0], torch.tensor([1.0, 1.5, 2.0], dtype=torch.float64) / 4.5)


def test_the_globe_weighs_latitudes_by_area():
    """The mean of sin² of latitude over a sphere is 1/3."""
    errors = []
    for n in (18, 36):
        latitude = -90 + (torch.arange(n, dtype=torch.float64) + 0.5) * 180 / n
        grid = Grid.latitude_longitude(latitude, torch.arange(0, 360, 30.0))
        field = torch.deg2rad(grid.coordinates[0]).sin().square()[:, None].expand(grid.shape)
        errors.append(abs(float((grid.volumes() * field).sum()) - 1 / 3))
    assert errors[1] < 0.3 * errors[0]
    assert grid.boundary == ("wall", "periodic")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grid.from_edges([torch.tensor([0.0, 1.0, 0.5])]),
        lambda: Grid.from_centres([torch.tensor([1.0])]),
        lambda: Grid.uniform((4, 4), boundary=("wall",)),
        lambda: Grid.uniform((4, 4), bounds=[(0, 1)]),
        lambda: Grid((torch.zeros(2),), (torch.arange(3.0),), (torch.tensor([0.9, 0.9]),)),
    ],
)
def test_grids_that_are_none_are_refused(make):
    with pytest.raises(ShapeError):
        make()


def test_a_signature_checks_itself():
    facts = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1)
    assert facts.evolves
    assert not OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True).evolves
    with pytest.raises(ConfigError, match="boundary names 1 axes"):
        OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, boundary=("wall",))


def test_trajectories_refuse_arrays_that_do_not_fit():
    grid, fields = Grid.uniform((4,)), (FieldSpec("u"),)
    made = Trajectories(values=np.zeros((3, 2, 4, 1)), grid=grid, times=np.arange(2.0), fields=fields)
    assert len(made) == 3
    assert not made.steady
    for wrong in ((3, 2, 5, 1), (3, 1, 4, 1), (3, 2, 4, 2), (3, 2, 4)):
        with pytest.raises(ShapeError, match=r"values must have shape \(samples, 2, 4, 1\)"):
            Trajectories(values=np.zeros(wrong), grid=grid, times=np.arange(2.0), fields=fields)
    with pytest.raises(ShapeError, match="steady task has one frame"):
        Trajectories(
            values=np.zeros((3, 2, 4, 1)),
            grid=grid,
            times=np.arange(2.0),
            fields=fields,
            inputs=np.zeros((3, 1, 4, 1)),
            input_fields=fields,
        )
    with pytest.raises(ShapeError, match="named but not given"):
        Trajectories(
            values=np.zeros((3, 2, 4, 1)), grid=grid, times=np.arange(2.0), fields=fields, param_names=("nu",)
        )
