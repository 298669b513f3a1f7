"""Train on one long netCDF record, split in time: the last part tests, with a gap before it."""

import sys
from pathlib import Path

import numpy as np
import xarray as xr

import spectrakan as sk

path = Path(sys.argv[1] if len(sys.argv) > 1 else "waves.nc")
if not path.exists():  # a stand-in for a file of your own: two travelling waves, 200 instants
    t, x = np.arange(200) * 0.05, np.arange(48) / 48
    u = np.sin(2 * np.pi * (x - t[:, None])) + 0.5 * np.sin(4 * np.pi * (x + 0.7 * t[:, None]))
    xr.Dataset({"u": (("time", "x"), u)}, {"time": t, "x": x}).to_netcdf(path, engine="h5netcdf")

data = sk.Trajectories.from_xarray(xr.load_dataset(path, engine="h5netcdf"), boundary=("periodic",), name="waves")
split = ["data.split.by=time", "data.split.gap=5", "data.split.train=0.7"]
split += ["data.split.validation=0.15", "data.split.test=0.15"]
run = sk.train(data=data, overrides=[*split, "data.history=2", "training.epochs=20", "model.width=16"])
print(run)
