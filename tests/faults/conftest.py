"""Small files of every format, to be damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import torch

import spectrakan as sk
from spectrakan.data import write_dataset
from spectrakan.fields import FieldSpec, Grid, Trajectories
from spectrakan.runs import provenance


def _own(steady: bool) -> Trajectories:
    rng = np.random.default_rng(1)
    frames = 1 if steady else 3
    fields = (FieldSpec("density", "kg/m3", positive=True), FieldSpec("velocity", "m/s"))
    return Trajectories(
        values=rng.standard_normal((4, frames, 8, 6, 2)).astype(np.float32),
        grid=Grid.uniform((8, 6), ((0.0, 2.0), (-1.0, 1.0)), ("periodic", "wall")),
        times=np.arange(float(frames)),
        fields=fields,
        inputs=rng.standard_normal((4, 1, 8, 6, 1)).astype(np.float32) if steady else None,
        input_fields=(FieldSpec("coefficient"),) if steady else (),
        params=rng.standard_normal((4, 1)),
        param_names=("Re",),
        name="example",
        constants={"nu": 0.5},
    )


def _pdebench(folder: Path) -> list[Path]:
    rng = np.random.default_rng(2)
    x, y = (np.arange(16) + 0.5) / 16, (np.arange(12) + 0.5) / 12
    located = {"x-coordinate": x, "y-coordinate": y, "z-coordinate": y[:6] * 2}
    sets: dict[str, dict[str, np.ndarray]] = {
        "ReacDiff_Nu0.5_Rho1.0.hdf5": {
            "tensor": rng.standard_normal((4, 5, 16)),
            "t-coordinate": np.arange(6.0),
        },
        "Darcy.hdf5": {"tensor": rng.standard_normal((4, 1, 16, 12)), "nu": rng.standard_normal((4, 16, 12))},
    }
    for dims, names in enumerate((["Vx"], ["Vx", "Vy"], ["Vx", "Vy", "Vz"]), start=1):
        arrays = {name: rng.standard_normal((2, 3, *(16, 12, 6)[:dims])) for name in ["density", "pressure", *names]}
        sets[f"{dims}D_CFD_periodic.hdf5"] = arrays
    for name, arrays in sets.items():
        dims = 2 if "nu" in arrays else next(iter(arrays.values())).ndim - 2
        with h5py.File(folder / name, "w") as file:
            for key, array in {**arrays, **dict(list(located.items())[:dims])}.items():
                file.create_dataset(key, data=array.astype("f4"), chunks=array.shape if dims == 2 else None)
    with h5py.File(folder / "2D_rdb.h5", "w") as file:
        for group in ("0000", "0001", "0007"):
            file[f"{group}/data"] = rng.standard_normal((3, 16, 12, 1)).astype("f4")
            for key, numbers in {"x": x, "y": y, "t": np.arange(3.0)}.items():
                file[f"{group}/grid/{key}"] = numbers
            file[group].attrs["config"] = "sim: {gravity: 1.0}"
    return [*(folder / name for name in sets), folder / "2D_rdb.h5"]


def _foreign(folder: Path) -> list[Path]:
    rng = np.random.default_rng(3)
    pair = {"x": rng.standard_normal((4, 16, 12)), "y": rng.standard_normal((4, 16, 12))}
    values = rng.standard_normal((4, 3, 16, 2))
    np.savez(folder / "plain.npz", values=values, times=np.arange(3.0))
    np.savez_compressed(folder / "packed.npz", values=values, times=np.arange(3.0))
    tensors = {key: torch.from_numpy(array) for key, array in pair.items()}
    torch.save(tensors, folder / "pair.pt")
    torch.save(tensors, folder / "old.pt", _use_new_zipfile_serialization=False)
    scipy.io.savemat(folder / "five.mat", {"coeff": pair["x"], "sol": pair["y"]})
    scipy.io.savemat(folder / "packed.mat", {"a": pair["x"], "u": pair["y"]}, do_compression=True)
    with h5py.File(folder / "seven.mat", "w", userblock_size=512) as file:
        file["coeff"], file["sol"] = pair["x"].T, pair["y"].T
    with (folder / "seven.mat").open("rb+") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))
    with scipy.io.netcdf_file(folder / "classic.nc", "w") as file:
        for name, size in {"time": 3, "lat": 6, "lon": 8}.items():
            file.createDimension(name, size)
            file.createVariable(name, "f8", (name,))[:] = np.arange(float(size))
        file.createVariable("air", "f4", ("time", "lat", "lon"))[:] = rng.standard_normal((3, 6, 8))
    with h5py.File(folder / "deflated.h5", "w") as file:
        file.create_dataset("values", data=values, chunks=(1, 3, 16, 2), compression="gzip", shuffle=True)
        file["fields"], file["params"] = ["u", "v"], rng.standard_normal((4, 2))
    names = [
        "deflated.h5",
        "plain.npz",
        "packed.npz",
        "pair.pt",
        "old.pt",
        "five.mat",
        "packed.mat",
        "seven.mat",
        "classic.nc",
    ]
    return [folder / name for name in names]


@pytest.fixture(scope="session")
def sound_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One small file of every format and layout, and a saved model."""
    folder = tmp_path_factory.mktemp("sound")
    own = [
        write_dataset(folder / "native.h5", _own(steady=False)),
        write_dataset(folder / "steady.h5", _own(steady=True)),
        write_dataset(folder / "own.nc", _own(steady=False)),
    ]
    return [*own, *_pdebench(folder), *_foreign(folder), _model(folder / "saved_model")]


def _model(folder: Path) -> Path:
    signature = sk.OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1)
    torch.manual_seed(0)
    sk.build_model("spectrakan", signature, width=4, num_modes=2, num_layers=1).save_pretrained(folder)
    return folder


@pytest.fixture
def keep_outcome(request: pytest.FixtureRequest) -> Callable[[Mapping[str, float]], None]:
    """Puts the counts of a proof into the record that SPECTRAKAN_RELIABILITY_RECORD names, if it names one."""

    def keep(counts: Mapping[str, float]) -> None:
        place = os.environ.get("SPECTRAKAN_RELIABILITY_RECORD")
        if place is None:
            return
        known = json.loads(Path(place).read_text()) if Path(place).exists() else {}
        command = f"SPECTRAKAN_RELIABILITY_RECORD=results/{Path(place).name} pytest -m slow {request.node.nodeid}"
        known[request.node.name] = {"command": command, "commit": provenance()["commit"], "counts": dict(counts)}
        Path(place).write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")

    return keep
