"""The Well's layout: a file made by its public specification alone, and the way back from what we write."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import spectrakan as sk
from spectrakan.data.files import write_dataset

B, T, W, H = 3, 4, 8, 6


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A file as the specification describes it, with texts of variable length as h5py writes them."""
    path = tmp_path / "sample.hdf5"
    draw = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        file.attrs.update(dataset_name="ExampleDSet", grid_type="cartesian", n_spatial_dims=2, n_trajectories=B)
        file.attrs.update(simulation_parameters=["Reynolds"], Reynolds=250.0)
        place = file.create_group("dimensions")
        place.attrs["spatial_dims"] = ["x", "y"]
        place["time"] = np.arange(T, dtype="f4") / 10
        place["x"] = ((np.arange(W) + 0.5) / W).astype("f4")
        place["y"] = (2 * (np.arange(H) + 0.5) / H).astype("f4")
        for name in place:
            place[name].attrs["sample_varying"] = False
        for name, axis, kind, size in (("X_boundary", "x", "PERIODIC", W), ("Y_boundary", "y", "wall", H)):
            edge = file.create_group(f"boundary_conditions/{name}")
            edge.attrs.update(associated_dims=[axis], associated_fields=[], bc_type=kind)
            edge["mask"] = np.arange(size) == 0
            edge["values"] = np.zeros(1, dtype="f4")
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = ["forcing", "clock", "gravity"]
        for name, numbers, by_sample, by_time in (
            ("forcing", [1.0, 2.0, 3.0], True, False),
            ("clock", np.arange(T), False, True),
            ("gravity", [9.5], False, False),
        ):
            scalars[name] = np.asarray(numbers, dtype="f4")
            scalars[name].attrs.update(sample_varying=by_sample, time_varying=by_time)
        for group, name, shape, attributes in (
            ("t0_fields", "pressure", (B, T, W, H), {}),
            ("t0_fields", "mask", (W, H), {"sample_varying": False, "time_varying": False}),
            ("t0_fields", "profile", (B, T, W), {"dim_varying": [True, False]}),
            ("t1_fields", "velocity", (B, T, W, H, 2), {}),
            ("t2_fields", "stress", (B, T, W, H, 2, 2), {"symmetric": False, "antisymmetric": False}),
        ):
            made = file.require_group(group).create_dataset(name, data=draw.random(shape, dtype="f4"))
            made.attrs.update(
                {"sample_varying": True, "time_varying": True, "dim_varying": [True, True], **attributes}
            )
            file[group].attrs["field_names"] = list(file[group])
    return path


def test_names_boundaries_numbers_and_fields_of_a_file_by_the_specification(sample: Path):
    found = sk.load_dataset(sample)
    names = [spec.name for spec in found.fields]
    assert names == [
        "mask", "pressure", "profile", "velocity_x", "velocity_y",
        "stress_xx", "stress_xy", "stress_yx", "stress_yy",
    ]  # fmt: skip
    assert found.grid.boundary == ("periodic", "wall")
    assert found.grid.bounds == ((0.0, 1.0), (0.0, 2.0))
    assert found.grid.is_uniform()
    assert (found.name, found.constants) == ("ExampleDSet", {"Reynolds": 250.0, "gravity": 9.5})
    assert (found.param_names, found.params[:, 0].tolist()) == (("forcing",), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found.times, [0.0, 0.1, 0.2, 0.3], rtol=1e-6)
    values = np.asarray(found.values)
    with h5py.File(sample) as file:
        np.testing.assert_array_equal(values[..., 0], np.broadcast_to(file["t0_fields/mask"][()], (B, T, W, H)))
        np.testing.assert_array_equal(values[..., 1], file["t0_fields/pressure"][()])
        profile = np.broadcast_to(file["t0_fields/profile"][()][..., None], (B, T, W, H))
        np.testing.assert_array_equal(values[..., 2], profile)
        np.testing.assert_array_equal(values[..., 3:5], file["t1_fields/velocity"][()])
        np.testing.assert_array_equal(values[..., 5:], file["t2_fields/stress"][()].reshape(B, T, W, H, 4))


def test_a_file_is_read_through_an_address_in_parts(sample: Path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/sets/sample.hdf5", sample.read_bytes())
    there, here = sk.load_dataset("memory://sets/sample.hdf5", most_bytes=0), sk.load_dataset(sample)
    assert there.grid.boundary == here.grid.boundary
    np.testing.assert_array_equal(np.asarray(there.values[1:2, 2:3]), np.asarray(here.values[1:2, 2:3]))
    with pytest.raises(sk.errors.SpectraKANError, match=r"memory://sets/missing\.hdf5"):
        sk.load_dataset("memory://sets/missing.hdf5")


@pytest.mark.parametrize("steady", [False, True])
def test_what_is_written_comes_back(tmp_path: Path, steady: bool):
    draw = np.random.default_rng(1)
    values = draw.random((3, 1 if steady else 5, 8, 10, 3)).astype("f4")
    data = sk.Trajectories.from_arrays(
        values, fields=("density", "velocity_x", "velocity_y"), boundary=("wall", "periodic"),
        grid=sk.Grid.uniform((8, 10), bounds=((-1.0, 1.0), (0.0, 4.0)), boundary=("wall", "periodic")),
        times=[0.0] if steady else np.arange(5) * 0.25, params=np.array([[1.0], [2.0], [3.5]]), param_names=("nu",),
        inputs=draw.random((3, 1, 8, 10, 1)).astype("f4") if steady else None,
        input_fields=("coefficient",) if steady else (), name="mine",
    )  # fmt: skip
    path = write_dataset(tmp_path / "mine.hdf5", data, dtype=np.float32, layout="the_well")
    with h5py.File(path) as file:
        assert file["t1_fields/velocity"].shape == (3, values.shape[1], 8, 10, 2)
        assert list(file["t0_fields"].attrs["field_names"]) == ["density", *(["coefficient"] if steady else [])]
    back = sk.load_dataset(path)
    assert [spec.name for spec in back.fields] == ["density", "velocity_x", "velocity_y"]
    assert back.grid.boundary == ("wall", "periodic")
    assert back.grid.bounds == ((-1.0, 1.0), (0.0, 4.0))
    np.testing.assert_array_equal(np.asarray(back.values), values)
    np.testing.assert_array_equal(back.params, data.params)
    assert steady == (back.inputs is not None)
    if steady:
        np.testing.assert_array_equal(np.asarray(back.inputs), np.asarray(data.inputs))


def test_contradictions_are_refused(sample: Path):
    with h5py.File(sample, "r+") as file:
        file["t1_fields/velocity"].attrs["time_varying"] = False
    with pytest.raises(sk.errors.DataFormatError, match="velocity"):
        sk.load_dataset(sample)


def test_neuraloperator_s_burgers_and_the_fno_authors_files(tmp_path: Path):
    import torch
    from scipy.io import savemat

    y = torch.rand(5, 17, 16, dtype=torch.float64)
    torch.save({"x": y[:, 0].clone(), "y": y, "visc": torch.tensor(0.01)}, tmp_path / "burgers_train_16.pt")
    found = sk.load_dataset(tmp_path / "burgers_train_16.pt")
    np.testing.assert_array_equal(np.asarray(found.values)[..., 0], y.numpy())
    assert found.constants["visc"] == pytest.approx(0.01)
    assert found.grid.boundary == ("periodic",)
    u = np.random.default_rng(0).random((4, 8, 8, 6))
    savemat(tmp_path / "ns.mat", {"a": u[..., 0], "u": u, "t": np.arange(1.0, 7.0)[None]})
    found = sk.load_dataset(tmp_path / "ns.mat")
    np.testing.assert_array_equal(np.asarray(found.values)[..., 0], np.moveaxis(u, -1, 1))
    np.testing.assert_array_equal(found.times, np.arange(1.0, 7.0))
