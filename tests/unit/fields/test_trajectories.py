"""Trajectories from arrays and xarray, cut, shown and given back."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
import torch
import xarray as xr
from matplotlib.figure import Figure

from spectrakan.data.files import load_dataset, write_dataset
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


def test_a_globe_of_xarray_has_the_grid_that_its_file_has(tmp_path):
    """Volumes by the sine of latitude, a periodic longitude; an axis of one level is dropped."""
    times = np.datetime64("2000-01-01", "ns") + np.arange(3) * np.timedelta64(6, "h")
    coords = {"time": times, "level": [500.0], "lat": [60.0, 20.0, -20.0, -60.0], "lon": 90.0 * np.arange(4)}
    values = np.random.default_rng(0).random((3, 1, 4, 4))
    record = xr.Dataset(
        {"t": (("time", "level", "lat", "lon"), values), "land": (("lat", "lon"), values[0, 0])}, coords
    )
    record.to_netcdf(tmp_path / "globe.nc", engine="h5netcdf")
    stored = load_dataset(tmp_path / "globe.nc")
    for made in (Trajectories.from_xarray(record), Trajectories.from_xarray(record["t"])):
        assert made.grid.boundary == stored.grid.boundary == ("wall", "periodic")
        assert made.grid.weights[0].tolist() == stored.grid.weights[0].tolist()
        assert made.grid.weights[0][1] > 1.5 * made.grid.weights[0][0]
        assert np.array_equal(made.values, np.asarray(stored.values))
        assert np.array_equal(made.values[0, :, ::-1, :, 0], values[:, 0])
        assert made.times.tolist() == stored.times.tolist() == [0.0, 0.25, 0.5]
    assert Trajectories.from_xarray(record, boundary=("outflow",)).grid.boundary == ("outflow", "outflow")
    with pytest.raises(ShapeError, match="'land' has other dimensions than 't'; name those that agree by fields="):
        Trajectories.from_xarray(record, ("t", "land"))


def test_parameters_and_steady_problems_come_back_from_xarray_and_its_files(tmp_path):
    steady = Trajectories.from_arrays(
        np.random.default_rng(0).random((3, 8, 6, 1)), ("p",), inputs=np.random.default_rng(1).random((3, 8, 6, 2)),
        input_fields=("a", "b"), params=[1.0, 2.0, 3.0], param_names=("beta",), name="flow",
    )  # fmt: skip
    for given in (waves(), steady):
        stored = load_dataset(write_dataset(tmp_path / f"{given.name}.nc", given))
        for made in (stored, Trajectories.from_xarray(given.to_xarray())):
            assert made.param_names == given.param_names
            assert np.array_equal(made.params, given.params)
            assert np.array_equal(np.asarray(made.values), given.values)
            assert [spec.name for spec in made.input_fields] == [spec.name for spec in given.input_fields]
    assert np.array_equal(np.asarray(made.inputs), steady.inputs)


@pytest.mark.parametrize(
    "times",
    [
        [datetime(2000, 1, 1, 6 * hour) for hour in range(3)],
        np.arange(3) * np.timedelta64(6, "h"),
        np.datetime64("2000-01-01") + np.arange(3) * np.timedelta64(6, "h"),
    ],
)
def test_dates_and_durations_are_days(times):
    made = Trajectories.from_arrays(np.zeros((1, 3, 4, 1)), ("u",), times=times)
    assert made.times.tolist() == [0.0, 0.25, 0.5]


def test_numbers_of_other_programs_become_plain_ones():
    """Masked numbers, whose memory holds anything, other byte orders, wide numbers and tensors with gradients."""
    plain = np.random.default_rng(0).random((2, 3, 4, 1))
    masked = Trajectories.from_arrays(np.ma.masked_where(plain < 0.5, plain), ("u",))
    assert np.array_equal(np.isnan(np.asarray(masked.values)), plain < 0.5)
    counts = Trajectories.from_arrays(np.ma.masked_equal(np.arange(24).reshape(2, 3, 4, 1), 7), ("u",))
    assert np.argwhere(np.isnan(np.asarray(counts.values))).tolist() == [[0, 1, 3, 0]]
    for given in (plain.astype(">f8"), plain.astype(np.longdouble), torch.tensor(plain, requires_grad=True)):
        made = Trajectories.from_arrays(given, ("u",))
        assert made.values.dtype == np.float64
        assert made.values.dtype.isnative
        assert np.array_equal(made.values, plain)


def test_centres_in_single_precision_are_equal_cells():
    centres = np.linspace(-np.pi, np.pi, 1024, endpoint=False, dtype=np.float32)
    for grid in (centres, [centres], centres.tolist()):
        made = Trajectories.from_arrays(np.zeros((1, 2, 1024, 1)), ("u",), grid=grid)
        assert made.grid.is_uniform()
        assert made.grid.extent[0] == pytest.approx(2 * np.pi, rel=1e-5)
    mesh = np.meshgrid(np.arange(8.0), np.arange(8.0))
    with pytest.raises(
        ShapeError, match=r"one array of cell centres for each axis, got arrays of shape \(8, 8\), \(8, 8\)"
    ):
        Trajectories.from_arrays(np.zeros((1, 2, 8, 8, 1)), ("u",), grid=mesh)
    with pytest.raises(ShapeError, match=r"param_names must be a list of names such as \('nu',\)"):
        Trajectories.from_arrays(np.zeros((1, 2, 8, 1)), ("u",), params=[0.1], param_names="nu")


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
