"""PDEBench's layouts: exactly what is stored, in our order, whatever the quirks of the file."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from spectrakan.data import load_dataset
from spectrakan.data.files import every_cell
from spectrakan.errors import DataFormatError

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def centres(count: int, low: float, high: float) -> np.ndarray:
    return (low + (np.arange(count) + 0.5) * (high - low) / count).astype(np.float32)


def write(path: Path, arrays: dict[str, np.ndarray], **attributes: float) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
        file.attrs.update(attributes)
    return path


def test_stored_reaction_diffusion(reference_data: Path):
    path = reference_data / "pdebench_layout" / "ReacDiff_Nu0.5_Rho1.0.hdf5"
    found = load_dataset(path)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(np.asarray(found.values), file["tensor"][...][..., None])
        assert found.values.dtype == file["tensor"].dtype
        np.testing.assert_array_equal(found.grid.coordinates[0].numpy(), file["x-coordinate"][...])
        np.testing.assert_array_equal(found.times, file["t-coordinate"][:101])
    assert (found.name, found.grid.boundary, found.grid.bounds) == (
        "diffusion_reaction1d",
        ("periodic",),
        ((0.0, 1.0),),
    )
    assert found.constants == {"nu": 0.5, "rho": 1.0}


def test_stored_darcy(reference_data: Path):
    path = reference_data / "pdebench_layout" / "2D_DarcyFlow_beta1.0_Train.hdf5"
    found = load_dataset(path)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(np.asarray(found.values), file["tensor"][...][..., None])
        np.testing.assert_array_equal(np.asarray(found.inputs), file["nu"][...][:, None, ..., None])
    assert [spec.name for spec in (*found.input_fields, *found.fields)] == ["coefficient", "pressure"]
    assert (found.name, found.grid.boundary) == ("darcy2d", ("dirichlet", "dirichlet"))
    assert found.grid.bounds == ((0.0, 1.0), (0.0, 1.0))
    assert found.constants == {"beta": 1.0}


def test_stored_dam_break(reference_data: Path):
    path = reference_data / "pdebench_layout" / "2D_rdb_NA_NA.h5"
    found = load_dataset(path)
    with h5py.File(path) as file:
        for sample, group in enumerate(sorted(file)):
            np.testing.assert_array_equal(found.values[sample], file[group]["data"][...])
        np.testing.assert_array_equal(found.times, file["0000/grid/t"][...])
        np.testing.assert_array_equal(found.grid.coordinates[1].numpy(), file["0000/grid/y"][...])
    assert (found.name, found.grid.boundary) == ("shallow_water2d", ("outflow", "outflow"))
    assert found.grid.bounds == ((-2.5, 2.5), (-2.5, 2.5))
    assert found.fields[0].positive


def test_strides_are_plain_and_begin_with_the_first(reference_data: Path):
    path = reference_data / "pdebench_layout" / "2D_rdb_NA_NA.h5"
    found = every_cell(load_dataset(path).every(5), 2)
    whole = np.asarray(load_dataset(path).values)
    np.testing.assert_array_equal(np.asarray(found.values), whole[:, ::5, ::2, ::2])
    assert found.values.shape[1:] == (21, 32, 32, 1)
    assert len(found.times) == 21


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_flow_is_reordered_by_name_whatever_its_rank(tmp_path: Path, dims: int):
    space = (6, 5, 4)[:dims]
    names = ["Vz", "Vx", "pressure", "Vy", "density"] if dims == 3 else ["Vx", "pressure", "Vy", "density"]
    arrays = {name: numbers(3, 4, *space) for name in names if dims > 1 or name != "Vy"}
    located = {f"{axis}-coordinate": centres(size, -1, 1) for axis, size in zip("xyz", space, strict=False)}
    name = f"{dims}D_CFD_Rand_M0.1_Eta1.e-8_Zeta1.e-8_periodic_Train.hdf5"
    times = np.linspace(0, 0.04, 5, dtype=np.float32)
    found = load_dataset(write(tmp_path / name, {**arrays, **located, "t-coordinate": times}))
    order = ["density", *[f"V{axis}" for axis in "xyz"[:dims]], "pressure"]
    np.testing.assert_array_equal(np.asarray(found.values), np.stack([arrays[key] for key in order], axis=-1))
    velocity = ["velocity"] if dims == 1 else [f"velocity_{axis}" for axis in "xyz"[:dims]]
    assert [spec.name for spec in found.fields] == ["density", *velocity, "pressure"]
    assert [spec.positive for spec in found.fields] == [True, *[False] * dims, True]
    assert found.grid.bounds == ((-1.0, 1.0),) * dims
    assert found.grid.boundary == ("periodic",) * dims
    assert found.constants == {"mach": 0.1, "eta": 1e-8, "zeta": 1e-8}
    assert found.name == ("cns1d" if dims == 1 else "")
    np.testing.assert_array_equal(found.times, times[:4])


def test_the_name_says_outflow_and_attributes_overrule_the_name(tmp_path: Path):
    arrays = {name: numbers(2, 3, 8) for name in ("density", "pressure", "Vx")}
    path = tmp_path / "1D_CFD_Shock_Eta1.e-8_Zeta0.1_trans_Train.hdf5"
    found = load_dataset(write(path, arrays, eta=0.25))
    assert found.grid.boundary == ("outflow",)
    assert found.constants == {"eta": 0.25, "zeta": 0.1}


def groups(path: Path, keys: list[str], *, with_grid: list[str], channels: int = 1) -> dict[str, np.ndarray]:
    stored = {key: numbers(3, 4, 5, channels) for key in keys}
    with h5py.File(path, "w") as file:
        for key, data in stored.items():
            file[f"{key}/data"] = data
            if key in with_grid:
                file[f"{key}/grid/x"] = centres(4, -2.5, 2.5)
                file[f"{key}/grid/y"] = centres(5, -2.5, 2.5)
                file[f"{key}/grid/t"] = np.linspace(0, 1, 3, dtype=np.float32)
    return stored


def test_groups_need_no_particular_group_and_keep_numeric_order(tmp_path: Path):
    keys = ["0000", "0002", "0022", "0024", "10000"]
    stored = groups(tmp_path / "few.h5", keys, with_grid=["0002", "0024"])
    found = load_dataset(tmp_path / "few.h5")
    np.testing.assert_array_equal(np.asarray(found.values), np.stack([stored[key] for key in keys]))
    assert found.grid.bounds == ((-2.5, 2.5), (-2.5, 2.5))
    assert found.times.tolist() == [0.0, 0.5, 1.0]


def test_groups_with_two_channels_are_the_other_task(tmp_path: Path):
    groups(tmp_path / "two.h5", ["0000"], with_grid=[], channels=2)
    found = load_dataset(tmp_path / "two.h5")
    assert [spec.name for spec in found.fields] == ["activator", "inhibitor"]
    assert found.name == ""
    assert found.grid.bounds == ((0.0, 1.0), (0.0, 1.0))
    assert found.grid.boundary == ()


def test_a_group_of_another_grid_or_shape_is_named(tmp_path: Path):
    path = tmp_path / "odd.h5"
    groups(path, ["0000", "0001"], with_grid=["0000", "0001"])
    with h5py.File(path, "a") as file:
        file["0001/grid/x"][...] += 1
    with pytest.raises(DataFormatError, match=r"0001/grid/x.*same numbers as in group 0000"):
        load_dataset(path)
    with h5py.File(path, "a") as file:
        del file["0001/data"]
        file["0001/data"] = numbers(3, 4, 6, 1)
    with pytest.raises(DataFormatError, match=r"0001/data.*\(3, 4, 5, 1\) as in 0000/data, found \(3, 4, 6, 1\)"):
        load_dataset(path)


def test_a_sample_under_a_name_that_is_no_number_is_not_left_out_silently(tmp_path: Path):
    groups(tmp_path / "odd.h5", ["0000", "0001", "00o2"], with_grid=[])
    with pytest.raises(DataFormatError, match="'00o2/data': expected a group that is named by a number"):
        load_dataset(tmp_path / "odd.h5")


def test_other_tensor_files_have_an_unknown_task(tmp_path: Path):
    data = numbers(2, 3, 8)
    found = load_dataset(write(tmp_path / "1D_Burgers_Sols_Nu0.001.hdf5", {"tensor": data}))
    assert found.name == ""
    assert found.constants == {"nu": 0.001}
    assert found.grid.boundary == ()
    np.testing.assert_array_equal(np.asarray(found.values), data[..., None])


def test_the_ending_does_not_matter(tmp_path: Path):
    data = numbers(2, 3, 8)
    found = load_dataset(write(tmp_path / "data.h5", {"tensor": data}, Nu=0.5, rho=2.0))
    assert found.name == "diffusion_reaction1d"
    assert found.constants == {"nu": 0.5, "rho": 2.0}
    np.testing.assert_array_equal(np.asarray(found.values), data[..., None])


def test_decreasing_coordinates_turn_the_field_too(tmp_path: Path):
    data = numbers(2, 3, 8)
    path = write(tmp_path / "down.hdf5", {"tensor": data, "x-coordinate": centres(8, 0, 1)[::-1].copy()})
    found = load_dataset(path)
    np.testing.assert_array_equal(np.asarray(found.values), data[:, :, ::-1, None])
    assert found.grid.bounds == ((0.0, 1.0),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"tensor": numbers(2, 8)},
            r"'tensor': expected axes \(sample, time, x\[, y\[, z\]\]\), found shape",
        ),
        ({"x-coordinate": centres(7, 0, 1)}, "'x-coordinate': expected 8 cell centres along x, found 7"),
        (
            {"x-coordinate": np.full(8, np.nan)},
            "'x-coordinate': expected finite numbers, found nan at index 0",
        ),
        ({"x-coordinate": np.zeros(8)}, "contradict each other"),
        ({"t-coordinate": np.zeros(5)}, "'t-coordinate': expected one time for each of 3 frames, found 5"),
        ({"tensor": np.zeros((2, 3, 8), np.complex64)}, "'tensor': expected an array of real numbers"),
        ({"tensor": np.zeros((0, 3, 8))}, "'tensor': expected at least one number"),
        ({"nu": numbers(2, 8, 9)}, "'tensor': expected one frame for each of nu's"),
        ({"nu": numbers(8, 9)}, r"'tensor': expected one frame for each of nu's \(8, 9\)"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, change: dict[str, np.ndarray], message: str):
    arrays = {"tensor": numbers(2, 3, 8), "x-coordinate": centres(8, 0, 1), **change}
    with pytest.raises(DataFormatError, match=message):
        load_dataset(write(tmp_path / "bad.hdf5", arrays))


def test_flow_arrays_must_agree(tmp_path: Path):
    arrays = {"density": numbers(2, 3, 8), "pressure": numbers(2, 3, 8), "Vx": numbers(2, 3, 9)}
    with pytest.raises(
        DataFormatError, match=r"'Vx': expected samples, time and space of 'density', \(2, 3, 8\), found \(2, 3, 9\)"
    ):
        load_dataset(write(tmp_path / "bad.hdf5", arrays))
    plane = {name: numbers(2, 3, 8, 8) for name in ("density", "pressure", "Vx")}
    with pytest.raises(DataFormatError, match="no array 'Vy'; did you mean 'Vx'"):
        load_dataset(write(tmp_path / "plane.hdf5", plane))
