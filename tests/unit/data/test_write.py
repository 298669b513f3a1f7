"""What is written is what is read back: every feature, every writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spectrakan.data import load_dataset, write_dataset
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.errors import ConfigError, RunError, ShapeError
from spectrakan.fields import FieldSpec, Grid, Trajectories

Make = Callable[..., Trajectories]
Same = Callable[[Trajectories, Trajectories], None]

ENDINGS = (".h5", ".hdf5")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_round_trip_in_time(tmp_path: Path, in_time: Make, assert_same: Same, ending: str, dims: int):
    written = in_time(dims)
    assert_same(load_dataset(write_dataset(tmp_path / f"set{ending}", written)), written)


@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip_steady(tmp_path: Path, steady: Trajectories, assert_same: Same, ending: str):
    assert_same(load_dataset(write_dataset(tmp_path / f"set{ending}", steady)), steady)


@pytest.mark.parametrize("ending", ENDINGS)
def test_content_decides_not_the_name(tmp_path: Path, steady: Trajectories, assert_same: Same, ending: str):
    path = write_dataset(tmp_path / f"set{ending}", steady)
    assert_same(load_dataset(path.rename(tmp_path / "set.dat")), steady)


@pytest.mark.parametrize("ending", ENDINGS)
def test_type_of_numbers_can_be_chosen(tmp_path: Path, in_time: Make, ending: str):
    double = in_time(dtype=np.float64)
    found = load_dataset(write_dataset(tmp_path / f"set{ending}", double, dtype=np.float32))
    assert found.values.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(found.values), np.asarray(double.values).astype(np.float32))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_netcdf_has_fields_units_coordinates_times_and_parameters(tmp_path: Path, in_time: Make, dims: int):
    written = in_time(dims)
    found = load_dataset(write_dataset(tmp_path / "set.nc", written))
    np.testing.assert_array_equal(np.asarray(found.values), np.asarray(written.values))
    np.testing.assert_array_equal(found.times, written.times)
    np.testing.assert_array_equal(found.params, written.params)
    assert found.param_names == written.param_names
    # A field named like an axis gets a prefix.
    assert [(spec.name, spec.unit) for spec in found.fields] == [("density", "kg/m³"), ("field_x", "m/s")]
    for ours, theirs in zip(found.grid.coordinates, written.grid.coordinates, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_netcdf_of_a_steady_set_has_both_fields(tmp_path: Path, steady: Trajectories):
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(write_dataset(tmp_path / "set.nc", steady, dtype=np.float32)) as found:
        np.testing.assert_array_equal(found["u"].values, np.asarray(steady.values)[..., 0].astype(np.float32))
        given = np.asarray(steady.inputs)[:, 0].astype(np.float32)
        for channel, name in enumerate(("input_u", "land fraction")):
            np.testing.assert_array_equal(found[name].values, given[..., channel])


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_large_set_is_streamed_in_blocks(
    tmp_path: Path, in_time: Make, ending: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("spectrakan.fields.trajectories.BLOCK_BYTES", 2000)
    most: list[int] = []

    class Watched(np.ndarray):
        def __getitem__(self, block: tuple[slice, ...]) -> np.ndarray:
            read = super().__getitem__(block)
            most.append(read.nbytes)
            return read

    whole = np.arange(20 * 4 * 6 * 2, dtype=np.float32).reshape(20, 4, 6, 2)
    lazy = LazyArray.stack([Part(whole.view(Watched), (0, 1, 2, 3))])
    fields = (FieldSpec("a"), FieldSpec("b"))
    large = Trajectories(values=lazy, grid=Grid.uniform((6,)), times=np.arange(4.0), fields=fields)
    found = load_dataset(write_dataset(tmp_path / f"set{ending}", large))
    np.testing.assert_array_equal(np.asarray(found.values), whole)
    assert len(most) > 1
    assert max(most) <= 2000


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_write_leaves_what_was_there(tmp_path: Path, steady: Trajectories, assert_same: Same, ending: str):
    path = write_dataset(tmp_path / f"set{ending}", steady)

    class Broken(np.ndarray):
        def __getitem__(self, block: tuple[slice, ...]) -> np.ndarray:
            raise OSError("the disk is gone")

    lazy = LazyArray.stack([Part(np.zeros((2, 3, 4)).view(Broken), (0, 1, 2, None))])
    times, field = np.arange(3.0), (FieldSpec("u"),)
    broken = Trajectories(values=lazy, grid=Grid.uniform((4,)), times=times, fields=field)
    with pytest.raises(RunError, match=r"cannot write .*the disk is gone; choose a folder"):
        write_dataset(path, broken)
    assert_same(load_dataset(path), steady)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_equal_sets_make_equal_files(tmp_path: Path, in_time: Make):
    first, second = (write_dataset(tmp_path / f"{name}.h5", in_time()) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()


def test_unknown_endings_and_empty_sets_are_refused(tmp_path: Path, steady: Trajectories):
    with pytest.raises(ConfigError, match=r"unknown ending '.ncc'; did you mean '.nc'"):
        write_dataset(tmp_path / "set.ncc", steady)
    empty = Trajectories(
        values=np.zeros((0, 1, 4, 1)), grid=Grid.uniform((4,)), times=np.zeros(1), fields=(FieldSpec("u"),)
    )
    for ending in ENDINGS:
        with pytest.raises(ShapeError, match="empty"):
            write_dataset(tmp_path / f"set{ending}", empty)
    assert not list(tmp_path.iterdir())


def test_truth_values_become_zero_and_one(tmp_path: Path):
    values = np.array([[[[True], [False], [True]]]])
    mask = Trajectories(values=values, grid=Grid.uniform((3,)), times=np.zeros(1), fields=(FieldSpec("land"),))
    for ending in ENDINGS:
        found = load_dataset(write_dataset(tmp_path / f"set{ending}", mask))
        assert found.values[0, 0, :, 0].tolist() == [1, 0, 1], ending
