"""Write a data set: native HDF5, which keeps everything, or netCDF for other programs."""

from pathlib import Path
from typing import Any

import numpy as np

from spectrakan.data.formats import native, the_well
from spectrakan.errors import ConfigError, ShapeError, nearest, require_package
from spectrakan.fields import Trajectories
from spectrakan.storage import drafted


def write_dataset(path: Path | str, trajectories: Trajectories, *, dtype: Any = None, layout: str = "native") -> Path:
    """Write a set as native HDF5 (`.h5`, `.hdf5`), or as netCDF (`.nc`) for other programs.

    `layout="the_well"` writes HDF5 as The Well lays it out (`formats/the_well`).

    Numbers keep their type unless `dtype` asks for another. The file appears complete or not at all. From HDF5
    `load_dataset` gives the same set back; netCDF holds what `Trajectories.to_xarray` has: fields with units,
    coordinates, times and parameters.

    >>> import tempfile
    >>> from spectrakan.fields import FieldSpec, Grid
    >>> waves = Trajectories(np.zeros((4, 1, 8, 1)), Grid.uniform((8,)), np.zeros(1), (FieldSpec("height"),))
    >>> write_dataset(Path(tempfile.mkdtemp()) / "waves.nc", waves).name
    'waves.nc'
    """
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ConfigError(f"cannot write '{path}': unknown ending '{path.suffix}'{nearest(path.suffix, WRITERS)}")
    if 0 in trajectories.values.shape:
        raise ShapeError(f"cannot store an empty set of shape {tuple(trajectories.values.shape)}")
    if layout not in LAYOUTS or (layout != "native" and path.suffix == ".nc"):
        raise ConfigError(f"cannot write '{path}' in the layout '{layout}'{nearest(layout, LAYOUTS)} (HDF5 alone)")
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as beside:
        (the_well.write if layout == "the_well" else WRITERS[path.suffix])(beside, trajectories, dtype)
    return path


def _write_netcdf(path: Path, trajectories: Trajectories, dtype: Any) -> None:
    require_package("h5netcdf", "climate", f"writing '{path}'")
    stored = trajectories.with_arrays(
        lambda array: np.asarray(array).astype(native.stored_type(array, dtype), copy=False)
    )
    stored.to_xarray().to_netcdf(path, engine="h5netcdf")


WRITERS = {".h5": native.write, ".hdf5": native.write, ".nc": _write_netcdf}
"""How each ending is written."""
LAYOUTS = ("native", "the_well")
"""How arrays are named and grouped in HDF5."""
