"""Trajectories from arrays and xarray, cut, shown and given back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from matplotlib.figure import Figure

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec, Grid, Trajectories


def waves(samples: int = 3, frames: int = 4, cells: int = 8) -> Trajectories:
    values = np.random.default_rng(0).random((samples, frames, cells, 2))
    return Trajectories.from_arrays(
        values, fields=("u", FieldSpec("p", "Pa")), times=[0.0, 0.5, 1.0, 2.0], params=[1.0, 2.0, 3.0],
        param_names=("nu",), boundary=("periodic",), name="waves",
    )  # fmt: skip


def test_arrays_keep_their_numbers_and_say_what_they_are():
    made = waves()
    assert made.times.tolist() == [0.0, 0.5, 1.0, 2.0]
    assert made.params is not None
    assert made.params[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert made.grid.boundary == ("periodic",)
    assert repr(made) == "Trajectories(waves: 3 samples, 4 frames of u, p on 8 cells, periodic, parameters nu)"
    assert "Pa" in made._repr_html_()


def test_one_boundary_counts_for_all_axes_and_centres_make_a_grid():
    values = np.zeros((1, 2, 4, 6, 1))
    made = Trajectories.from_arrays(values, ("u",), grid=([0.5, 1.5, 2.5, 3.5], np.arange(6)), boundary=("wall",))
    assert made.grid.boundary == ("wall", "wall")
    assert made.grid.bounds[0] == (0.0, 4.0)


def test_steady_arrays_need_no_time_axis():
    made = Trajectories.from_arrays(
        np.ones((5, 8, 8, 1)), ("p",), inputs=np.zeros((5, 8, 8, 2)), input_fields=("a", "b")
    )
    assert made.steady
    assert made.values.shape == (5, 1, 8, 8, 1)
    assert made.inputs is not None
    assert made.inputs.shape == (5, 1, 8, 8, 2)


@pytest.mark.parametrize(
    ("values", "fields", "message"),
    [
        (np.zeros((30, 9, 24, 24)), ("u",), r"values\[\.\.\., None\]"),
        (np.zeros((9, 24, 1)), ("u",), r"values\[None\]"),
        (np.zeros((3, 9, 24, 2)), ("u",), "as many fields as names"),
        (np.zeros((3, 9, 24, 1), complex), ("u",), "real numbers"),
        (np.zeros((3, 9, 24, 1)), "u", r"a list of names such as \('u',\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(values, fields, message):
    with pytest.raises(ShapeError, match=message):
        Trajectories.from_arrays(values, fields)


@pytest.mark.parametrize(
    "times", [[0.0, 2.0, 1.0], [0.0, 1.0, np.inf], [0.0, np.nan, 1.0], [[0.0, 1.0, 2.0]]], ids=str
)
def test_times_must_be_finite_and_increase(times):
    with pytest.raises(ShapeError, match="increasing"):
        Trajectories.from_arrays(np.zeros((1, 3, 4, 1)), ("u",), times=times)


def test_xarray_there_and_back():
    made = waves()
    again = Trajectories.from_xarray(made.to_xarray(), ("u", "p"), boundary=("periodic",))
    assert np.array_equal(np.asarray(again.values), np.asarray(made.values))
    assert np.array_equal(again.times, made.times)
    assert again.fields == made.fields
    assert again.name == "waves"
    assert np.allclose(again.grid.coordinates[0], made.grid.coordinates[0])


def test_one_long_record_with_dates_and_descending_latitudes():
    times = np.array(["2000-01-01", "2000-01-02", "2000-01-04"], dtype="datetime64[ns]")
    values = np.arange(3 * 4.0).reshape(3, 4)
    record = xr.Dataset({"t2m": (("time", "lat"), values)}, {"time": times, "lat": [60.0, 20.0, -20.0, -60.0]})
    made = Trajectories.from_xarray(record)
    assert made.values.shape == (1, 3, 4, 1)
    assert made.times.tolist() == [0.0, 1.0, 3.0]
    assert made.grid.coordinates[0].tolist() == [-60.0, -20.0, 20.0, 60.0]
    assert made.values[0, 0, :, 0].tolist() == [3.0, 2.0, 1.0, 0.0]
    with pytest.raises(ShapeError, match="no variable q"):
        Trajectories.from_xarray(record, ("q",))


def test_cuts_keep_samples_frames_and_fields():
    made = waves()
    assert np.array_equal(made.select([2, 0]).values, np.asarray(made.values)[[2, 0]])
    assert made.between(1, 3).times.tolist() == [0.5, 1.0]
    assert made.every(2).times.tolist() == [0.0, 1.0]
    assert np.array_equal(made.only_fields(["p"]).values, np.asarray(made.values)[..., 1:])
    pieces = made.windows_in_time(2)
    assert pieces.num_samples == 6
    assert np.array_equal(pieces.values[1], np.asarray(made.values)[0, 2:])
    assert pieces.params is not None
    assert pieces.params[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    with pytest.raises(ConfigError, match="not speed"):
        made.only_fields(["speed"])


@pytest.mark.parametrize("space", [(8,), (8, 6), (4, 4, 4)])
def test_a_sample_is_drawn(space):
    made = Trajectories.from_arrays(np.random.default_rng(0).random((2, 3, *space, 1)), ("u",))
    figure = made.plot(1)
    assert isinstance(figure, Figure)
    drawn = figure.axes[0]
    shown = drawn.collections[0].get_array() if len(space) == 1 else drawn.images[0].get_array()
    frames = np.asarray(made.values)[1, ..., 0]
    expected = frames if len(space) == 1 else frames[0].T if len(space) == 2 else frames[0, ..., 2].T
    assert np.allclose(np.asarray(shown).reshape(expected.shape), expected)
    with pytest.raises(ConfigError, match="no field 'v'"):
        made.plot(0, "v")


def test_a_map_of_the_globe_has_north_above():
    globe = Grid.latitude_longitude(torch.linspace(-80, 80, 5), torch.arange(8) * 45.0)
    made = Trajectories.from_arrays(np.random.default_rng(0).random((1, 1, 5, 8, 1)), ("p",), grid=globe)
    drawn = made.plot(0).axes[0]
    assert np.allclose(drawn.images[0].get_array(), np.asarray(made.values)[0, 0, ..., 0])
    assert drawn.images[0].origin == "lower"
    assert drawn.images[0].get_extent() == pytest.approx([-22.5, 337.5, -90, 90])
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("longitude", "latitude")


def test_a_grid_of_ones_own_is_taken_as_it_is():
    grid = Grid.uniform((4,), bounds=((0.0, 2.0),), boundary=("wall",))
    assert Trajectories.from_arrays(np.zeros((1, 2, 4, 1)), ("u",), grid=grid).grid is grid
