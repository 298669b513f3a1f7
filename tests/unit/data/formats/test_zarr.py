"""Zarr folders with and without named axes, in both versions of the format."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from spectrakan.data import load_dataset
from spectrakan.data.lazy import LazyArray
from spectrakan.data.load import every_cell
from spectrakan.errors import DataFormatError

zarr = pytest.importorskip("zarr")
xarray = pytest.importorskip("xarray")


@pytest.mark.parametrize("version", [2, 3])
def test_arrays_with_customary_names(tmp_path: Path, version: Literal[2, 3], monkeypatch: pytest.MonkeyPatch):
    values = np.random.default_rng(0).standard_normal((3, 4, 6, 5, 2)).astype(np.float32)
    group = zarr.open_group(tmp_path / "set.zarr", mode="w", zarr_format=version)
    group.create_array("values", data=values, chunks=(1, 2, 6, 5, 2))
    group.create_array("times", data=np.arange(4.0))
    found = every_cell(load_dataset(tmp_path / "set.zarr"), 2)
    np.testing.assert_array_equal(np.asarray(found.values), values[:, :, ::2, ::2])
    assert found.times.tolist() == [0.0, 1.0, 2.0, 3.0]
    monkeypatch.setattr("spectrakan.data.load.HELD_BYTES", 0)
    lazy = load_dataset(tmp_path / "set.zarr").values
    assert isinstance(lazy, LazyArray)
    np.testing.assert_array_equal(lazy[2, 1::2, ::3], values[2, 1::2, ::3])


@pytest.mark.parametrize("version", [2, 3])
def test_named_axes(tmp_path: Path, version: Literal[2, 3]):
    rng = np.random.default_rng(0)
    wind = rng.standard_normal((4, 2, 6, 5))
    axes = ("time", "member", "y", "x")
    data = xarray.Dataset({"wind": (axes, wind, {"units": "m/s"})}, coords={"x": np.arange(5.0), "y": np.arange(6.0)})
    data.to_zarr(tmp_path / "set.zarr", zarr_format=version, consolidated=False)
    found = load_dataset(tmp_path / "set.zarr")
    np.testing.assert_array_equal(np.asarray(found.values), wind.transpose(1, 0, 2, 3)[..., None])
    assert (found.fields[0].name, found.fields[0].unit) == ("wind", "m/s")
    assert found.grid.bounds == ((-0.5, 5.5), (-0.5, 4.5))


def test_pdebench_names_in_a_group(tmp_path: Path):
    data = np.random.default_rng(0).standard_normal((2, 3, 8))
    group = zarr.open_group(tmp_path / "set.zarr", mode="w")
    group.create_array("tensor", data=data)
    np.testing.assert_array_equal(np.asarray(load_dataset(tmp_path / "set.zarr").values), data[..., None])


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    zarr.open_group(tmp_path / "set.zarr", mode="w").create_array("tensor", data=np.zeros((2, 3, 8)))
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(DataFormatError, match=r"pip install 'spectrakan\[climate\]'"):
        load_dataset(tmp_path / "set.zarr")


def test_damaged_metadata_is_named(tmp_path: Path):
    zarr.open_group(tmp_path / "set.zarr", mode="w").create_array("tensor", data=np.zeros((2, 3, 8)))
    place = tmp_path / "set.zarr" / "tensor" / "zarr.json"
    content = json.loads(place.read_text())
    place.write_text(json.dumps(content)[:-5])
    with pytest.raises(DataFormatError, match=r"tensor/zarr\.json"):
        load_dataset(tmp_path / "set.zarr")
