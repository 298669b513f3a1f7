"""A sample of a data set is drawn with its own numbers, on one scale through time."""

from __future__ import annotations

import numpy as np
import pytest
from figure_reading import bars, drawn, maps, mesh, overlapping, titled

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec, Grid, Trajectories
from spectrakan.report.figures import trajectory_figure


@pytest.fixture
def waves() -> Trajectories:
    values = np.random.default_rng(0).random((3, 7, 5, 2))
    return Trajectories(values, Grid.uniform((5,)), np.linspace(0, 3, 7), (FieldSpec("density"), FieldSpec("speed")))


@pytest.fixture
def plates() -> Trajectories:
    values = np.random.default_rng(1).random((2, 9, 4, 6, 1)) * np.arange(1, 10)[:, None, None, None]
    return Trajectories(values, Grid.uniform((4, 6)), np.arange(9) / 4, (FieldSpec("heat", "K"),))


def test_one_axis_is_drawn_over_space_and_time(waves):
    figure = trajectory_figure(waves, sample=2)
    assert [axes.get_title() for axes in maps(figure)] == ["density", "speed"]
    assert np.array_equal(drawn(titled(figure, "speed")), np.asarray(waves.values)[2, ..., 1])
    assert np.array_equal(drawn(maps(trajectory_figure(waves, 1, ["speed"]))[0]), np.asarray(waves.values)[1, ..., 1])
    assert overlapping(figure) == []


def test_two_axes_are_drawn_as_maps_in_time_on_one_scale(plates):
    figure = trajectory_figure(plates, sample=1, frames=3)
    values = np.asarray(plates.values)[1, ..., 0]
    assert [axes.get_title() for axes in maps(figure)] == ["t = 0", "t = 1", "t = 2"]
    assert np.array_equal(drawn(maps(figure)[2]), values[8].T)
    assert {mesh(axes).get_clim() for axes in maps(figure)} == {(values.min(), values.max())}
    assert [axes.get_ylabel() for axes in bars(figure)] == ["heat (K)"]
    last = trajectory_figure(plates, frames=[-1])
    assert [axes.get_title() for axes in maps(last)] == ["t = 2"]
    assert overlapping(trajectory_figure(plates, frames=9)) == []


def test_a_steady_sample_shows_input_and_solution(plates):
    inputs = np.asarray(plates.values)[:, :1] + 5
    steady = Trajectories(
        np.asarray(plates.values)[:, :1], plates.grid, np.zeros(1), plates.fields, inputs, (FieldSpec("source"),)
    )
    figure = trajectory_figure(steady)
    assert np.array_equal(drawn(titled(figure, "source")), inputs[0, 0, ..., 0].T)
    assert np.array_equal(drawn(titled(figure, "heat")), np.asarray(plates.values)[0, 0, ..., 0].T)
    assert len(bars(figure)) == 2
    assert overlapping(figure) == []


def test_what_cannot_be_drawn_is_named(waves, plates):
    with pytest.raises(ConfigError, match="no sample 3; the data have 3"):
        trajectory_figure(waves, sample=3)
    with pytest.raises(ConfigError, match=r"no field 'sped'.*speed"):
        trajectory_figure(waves, fields=["sped"])
    with pytest.raises(ConfigError, match="indices below 9"):
        trajectory_figure(plates, frames=[9])
    cube = Trajectories(np.zeros((1, 2, 3, 3, 3, 1)), Grid.uniform((3, 3, 3)), np.arange(2.0), (FieldSpec("u"),))
    with pytest.raises(ShapeError, match="one or two axes"):
        trajectory_figure(cube)
