"""Write a data set in the format that the ending of its name asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spectrakan.data.formats.native import save_dataset
from spectrakan.data.formats.netcdf import save_netcdf
from spectrakan.data.formats.npz import save_npz
from spectrakan.errors import ConfigError, nearest
from spectrakan.fields import Trajectories

WRITERS: dict[str, Callable[[Path, Trajectories, Any], Path]] = {
    ".h5": save_dataset,
    ".hdf5": save_dataset,
    ".nc": save_netcdf,
    ".npz": save_npz,
}


def write_dataset(path: Path | str, trajectories: Trajectories, *, dtype: Any = None) -> Path:
    """Write a set as native HDF5 (`.h5`, `.hdf5`), netCDF (`.nc`) or npz (`.npz`).

    Numbers keep their type unless `dtype` asks for another. The file appears complete or not at all, and
    `load_dataset` gives the same set back: fields, units, grid, times, parameters and constants.

    >>> import tempfile
    >>> import numpy as np
    >>> from spectrakan.fields import FieldSpec, Grid
    >>> waves = Trajectories(np.zeros((4, 1, 8, 1)), Grid.uniform((8,)), np.zeros(1), (FieldSpec("height"),))
    >>> write_dataset(Path(tempfile.mkdtemp()) / "waves.nc", waves).name
    'waves.nc'
    """
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ConfigError(f"cannot write '{path}': unknown ending '{path.suffix}'{nearest(path.suffix, WRITERS)}")
    return WRITERS[path.suffix](path, trajectories, dtype)
