"""Files that name their axes: fields, space, time and the globe are found by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io

from spectrakan.data import load_dataset, write_dataset
from spectrakan.data.lazy import LazyArray
from spectrakan.errors import DataFormatError

xarray = pytest.importorskip("xarray")
RNG = np.random.default_rng(0)


def test_stored_reanalysis(reference_data: Path):
    """Packed integers, latitudes north to south, hours since 1900."""
    path = reference_data / "climate" / "t850_ei.nc"
    found = load_dataset(path)
    with scipy.io.netcdf_file(path, mmap=False) as file:
        packed = file.variables["t"]
        unpacked = packed[:] * packed.scale_factor + packed.add_offset
        hours = file.variables["time"][:].astype(float)
    np.testing.assert_allclose(np.asarray(found.values)[0, ..., 0], unpacked[:, ::-1], rtol=1e-12)
    np.testing.assert_allclose(found.times, (hours - hours[0]) / 24)
    assert found.grid.coordinates[0][0] == 30.0
    assert (found.fields[0].name, found.fields[0].unit) == ("t", "K")
    assert found.grid.boundary == ()
    assert found.grid.weights[0][0] > found.grid.weights[0][-1], "cells shrink towards the pole"


@pytest.mark.parametrize("engine", ["scipy", "h5netcdf"])
@pytest.mark.parametrize("lazy", [False, True])
def test_global_fields_in_any_order_of_axes(tmp_path: Path, engine: str, lazy: bool, monkeypatch: pytest.MonkeyPatch):
    air = RNG.standard_normal((8, 4, 3)).astype(np.float32)  # longitude, latitude, time
    pres = RNG.standard_normal((3, 4, 8)).astype(np.float32)
    data = xarray.Dataset(
        {
            "air": (("longitude", "latitude", "time"), air, {"units": "K"}),
            "pres": (("time", "latitude", "longitude"), pres, {"units": "Pa"}),
            "orography": (("latitude", "longitude"), np.zeros((4, 8))),
        },
        coords={
            "longitude": np.arange(0.0, 360.0, 45.0),
            "latitude": np.array([67.5, 22.5, -22.5, -67.5]),
            "time": ("time", np.array([6.0, 12.0, 24.0]), {"units": "hours since 2000-01-01"}),
        },
    )
    data.to_netcdf(tmp_path / "set.nc", engine=engine)
    if lazy:
        monkeypatch.setattr("spectrakan.data.files.HELD_BYTES", 0)
    found = load_dataset(tmp_path / "set.nc")
    assert isinstance(found.values, LazyArray) is lazy
    expected = np.stack([air.transpose(2, 1, 0), pres], axis=-1)[:, ::-1]
    np.testing.assert_array_equal(np.asarray(found.values)[0], expected)
    assert [(spec.name, spec.unit) for spec in found.fields] == [("air", "K"), ("pres", "Pa")]
    assert found.times.tolist() == [0.0, 0.25, 0.75]
    assert found.grid.boundary == ("wall", "periodic")
    assert found.grid.bounds[0] == (-90.0, 90.0)
    faces = np.sin(np.deg2rad([-90.0, -45.0, 0.0, 45.0, 90.0]))
    np.testing.assert_allclose(found.grid.weights[0].numpy(), np.diff(faces) / 2)


def test_missing_values_become_nan(tmp_path: Path):
    data = xarray.Dataset({"u": (("member", "t", "x"), RNG.standard_normal((2, 3, 4)))})
    data["u"][1, 2, 3] = np.nan
    data.to_netcdf(tmp_path / "set.nc", encoding={"u": {"dtype": "i2", "scale_factor": 0.001, "_FillValue": -99}})
    values = np.asarray(load_dataset(tmp_path / "set.nc").values)
    assert np.argwhere(np.isnan(values)).tolist() == [[1, 2, 3, 0]]
    np.testing.assert_allclose(values[0, ..., 0], data["u"][0], atol=6e-4)


def test_fields_of_different_axes_need_a_mapping(tmp_path: Path):
    data = xarray.Dataset({"u": (("t", "x"), np.zeros((2, 4))), "v": (("t", "y"), np.zeros((2, 5)))})
    data.to_netcdf(tmp_path / "set.nc")
    with pytest.raises(
        DataFormatError,
        match=r"'v': expected the axes \(t, x\) of 'u', found \(t, y\); select the arrays by a mapping",
    ):
        load_dataset(tmp_path / "set.nc")
    mapping = {"values": [{"array": "v", "axes": ["time", "x"], "fields": ["v"]}]}
    assert load_dataset(tmp_path / "set.nc", mapping=mapping).values.shape == (1, 2, 5, 1)


def test_our_own_file_is_plain_netcdf_to_others(tmp_path: Path, reference_data: Path):
    written = load_dataset(reference_data / "pdebench_layout" / "2D_DarcyFlow_beta1.0_Train.hdf5")
    path = write_dataset(tmp_path / "set.nc", written)
    with xarray.open_dataset(path, engine="h5netcdf") as seen:
        assert seen["pressure"].dims == ("sample", "time", "x", "y")
        np.testing.assert_array_equal(seen["pressure"].values, np.asarray(written.values)[..., 0])
        np.testing.assert_array_equal(seen["x"].values, written.grid.coordinates[0].numpy())


def test_variables_of_the_samples_alone_are_parameters(tmp_path: Path):
    wind = RNG.standard_normal((3, 4, 8))
    data = xarray.Dataset(
        {"wind": (("sample", "time", "x"), wind), "Re": ("sample", [1.0, 2.0, 3.0]), "height": ((), 2.0)},
        coords={"sample": [10, 11, 12], "x": np.arange(8.0)},
    )
    data.to_netcdf(tmp_path / "set.nc", engine="h5netcdf")
    found = load_dataset(tmp_path / "set.nc")
    assert found.param_names == ("Re",)
    assert found.params is not None
    assert found.params.tolist() == [[1.0], [2.0], [3.0]]
    np.testing.assert_array_equal(np.asarray(found.values)[..., 0], wind)
