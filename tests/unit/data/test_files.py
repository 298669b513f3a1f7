"""Loading: large files stay on disk, workers can read them, and errors say what is wrong."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from operator import getitem
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from spectrakan.data import load_dataset, write_dataset
from spectrakan.data.files import every_cell, held
from spectrakan.data.lazy import HELD_BYTES, LazyArray
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.fields import Array, Trajectories

Make = Callable[..., Trajectories]


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small enough to be held in memory."""
    monkeypatch.setattr("spectrakan.data.files.HELD_BYTES", 0)


def reserve(file: h5py.File, name: str, shape: tuple[int, ...], dtype: str) -> None:
    """A dataset whose space is taken in the file and holds nothing but a hole of the file system."""
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    kind = h5py.h5t.py_create(np.dtype(dtype))
    h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), plan)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_file_of_25_gigabytes_takes_almost_no_memory(tmp_path: Path):
    path = tmp_path / "1D_CFD_Rand_Eta1.e-8_Zeta1.e-8_periodic_Train.hdf5"
    with h5py.File(path, "w") as file:
        for name in ("density", "pressure", "Vx"):
            reserve(file, name, (10000, 101, 1024), "f8")
            file[name][7000, 50, 3:5] = {"density": 1.0, "pressure": 3.0, "Vx": 2.0}[name]
    assert path.stat().st_size > 24e9
    before = resident_bytes()
    tracemalloc.start()
    found = load_dataset(path)
    coarse = every_cell(found.every(5), 8)
    window = found.values[7000, 45:55]
    scattered = coarse.values[::1000, 10, 0]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(found.values, LazyArray)
    assert found.values.nbytes > 24e9
    assert window[5, 3].tolist() == [1.0, 2.0, 3.0]
    assert window.sum() == 12.0
    assert coarse.values.shape == (10000, 21, 128, 3)
    assert scattered.shape == (10, 3)
    assert peak < 20e6
    assert resident_bytes() - before < 100e6


def test_parts_that_fit_are_held_and_larger_ones_are_not(tmp_path: Path):
    path = tmp_path / "flow.hdf5"
    with h5py.File(path, "w") as file:
        for name in ("density", "pressure", "Vx"):
            reserve(file, name, (250, 101, 1024), "f4")
    whole = load_dataset(path)
    part = held(every_cell(whole, 8), HELD_BYTES)
    assert isinstance(whole.values, LazyArray)
    assert whole.values.nbytes > HELD_BYTES
    assert isinstance(part.values, np.ndarray)


@pytest.mark.parametrize("ending", [".h5", ".nc"])
@pytest.mark.usefixtures("small_limit")
def test_lazy_and_held_sets_are_equal(tmp_path: Path, in_time: Make, ending: str):
    written = in_time()
    found = load_dataset(write_dataset(tmp_path / f"set{ending}", written))
    assert isinstance(found.values, LazyArray)
    assert isinstance(found.values, Array)
    np.testing.assert_array_equal(np.asarray(found.values), written.values)
    np.testing.assert_array_equal(found.values[1, ::2, ..., 1], np.asarray(written.values)[1, ::2, ..., 1])


@pytest.mark.usefixtures("small_limit")
def test_reads_are_pushed_down_to_the_file(tmp_path: Path, in_time: Make, monkeypatch: pytest.MonkeyPatch):
    path = write_dataset(tmp_path / "set.h5", in_time(samples=8))
    found = every_cell(load_dataset(path), 3)
    asked: list[Any] = []
    original = h5py.Dataset.__getitem__

    def spy(dataset: h5py.Dataset, key: Any, **options: Any) -> Any:
        asked.append((dataset.name, key))
        return original(dataset, key, **options)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", spy)
    found.values[1, 2:4]
    block = (slice(1, 2, 1), slice(2, 4, 1), slice(0, 4, 3), slice(0, 4, 3), slice(0, 2, 1))
    assert asked == [("/values", block)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.usefixtures("small_limit")
def test_worker_processes_open_the_file_for_themselves(reference_data: Path, method: str):
    source = reference_data / "pdebench_layout" / "2D_rdb_NA_NA.h5"
    values = load_dataset(source).values
    here = [values[sample] for sample in range(4)]  # opens the file before the workers start
    assert b"h5py" not in pickle.dumps(values)
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2 if method == "fork" else 1, mp_context=context) as pool:
        there = list(pool.map(getitem, [values] * 12, [0, 1, 2, 3] * 3, timeout=60))
    np.testing.assert_array_equal(there, here * 3)


@pytest.mark.usefixtures("small_limit")
def test_a_file_replaced_under_a_lazy_array_is_noticed_when_opened_again(tmp_path: Path, in_time: Make):
    path = write_dataset(tmp_path / "set.h5", in_time())
    values = load_dataset(path).values
    write_dataset(path, in_time(samples=4))
    with pytest.raises(DataFormatError, match="was changed while data were being read"):
        values[0]


def test_a_loaded_file_can_be_written_again_at_once(tmp_path: Path):
    path = tmp_path / "set.hdf5"
    for number in range(3):
        with h5py.File(path, "w") as file:
            file["tensor"] = np.full((2, 3, 4), float(number))
        assert float(load_dataset(path).values[0, 0, 0, 0]) == number


def test_parameters_follow_the_samples(tmp_path: Path, in_time: Make):
    written = in_time(samples=7)
    found = load_dataset(write_dataset(tmp_path / "set.h5", written)).select(slice(None, None, 3))
    assert found.params is not None
    assert written.params is not None
    np.testing.assert_array_equal(found.params, written.params[::3])


def test_a_stride_that_leaves_one_cell_is_refused(in_time: Make):
    with pytest.raises(ConfigError, match="leaves fewer than 2"):
        every_cell(in_time(), 5)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04K\x01.", b"\x89PNG\r\n\x1a\n" + bytes(600)])
def test_foreign_files_are_refused_by_name(tmp_path: Path, content: bytes):
    path = tmp_path / "data.h5"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=r"data\.h5"):
        load_dataset(path)


def test_missing_files_and_folders_are_refused(tmp_path: Path):
    with pytest.raises(DataFormatError, match="No such file"):
        load_dataset(tmp_path / "none.h5")
    with pytest.raises(DataFormatError, match="expected a regular file, found a folder"):
        load_dataset(tmp_path)


def test_arrays_without_meaning_are_listed(tmp_path: Path):
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file["group/field"] = np.zeros((2, 3))
    with pytest.raises(
        DataFormatError,
        match=r"group/field \(2, 3\); describe the arrays by a mapping; `spectrakan check --explain-mapping`",
    ):
        load_dataset(tmp_path / "odd.h5")


@pytest.mark.parametrize(("package", "act"), [("xarray", load_dataset), ("h5netcdf", write_dataset)])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, in_time: Make, monkeypatch: pytest.MonkeyPatch, package: str, act: Callable[..., Any]
):
    path = write_dataset(tmp_path / "set.nc", in_time())
    monkeypatch.setitem(sys.modules, package, None)
    arguments = (path,) if act is load_dataset else (path, in_time())
    with pytest.raises(ConfigError, match=rf"needs {package}: pip install 'spectrakan\[climate\]'"):
        act(*arguments)
