"""netCDF files, and all sets whose arrays name their axes, as containers; xarray opens them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import NUMBERS, Container
from spectrakan.data.decoding import decoding, missing_package
from spectrakan.data.formats.hdf5 import require_sound_heaps
from spectrakan.data.source import Block, Stamp, opened
from spectrakan.fields import Source

Engine = Literal["scipy", "h5netcdf", "zarr"]
CLASSIC = (b"CDF\x01", b"CDF\x02")


def open_netcdf(path: Path, *, faults: Mapping[str, str] | None = None, classic: bool = False) -> Container:
    """A netCDF file: classic through SciPy, netCDF-4 through h5netcdf, after `open_hdf5` has looked through it."""
    if not classic:
        with decoding(path, kind="netCDF"):
            require_sound_heaps(path)
    return open_labelled(path, "scipy" if classic else "h5netcdf", "netCDF", faults=faults)


@dataclass(frozen=True)
class LabelledSource:
    """A variable of a set that xarray opens."""

    path: Path
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stamp: Stamp
    engine: Engine

    def __getitem__(self, block: Block) -> npt.NDArray[Any]:
        """A block, by xarray's lazy indexing."""
        with decoding(self.path, self.key, kind="netCDF or Zarr"):
            dataset = opened(self.path, self.stamp, _OPENERS[self.engine])
            return np.asarray(dataset.variables[self.key][block].values)


def open_labelled(path: Path, engine: Engine, kind: str, *, faults: Mapping[str, str] | None = None) -> Container:
    """List the variables of a set; no field is read.

    xarray unpacks integers and replaces missing values by NaN, by the conventions of netCDF.
    """
    stamp = Stamp.of(path)
    arrays: dict[str, Source] = {}
    with decoding(path, kind=kind):
        try:
            dataset = opened(path, stamp, _OPENERS[engine])
        except ImportError:
            raise missing_package(path, "xarray, h5netcdf or zarr", "climate") from None
        attributes: dict[str, dict[str, Any]] = {"": {str(k): v for k, v in dataset.attrs.items()}}
        dims: dict[str, tuple[str, ...]] = {}
        for name, variable in dataset.variables.items():
            key = str(name)
            arrays[key] = LabelledSource(path, key, tuple(variable.shape), variable.dtype, stamp, engine)
            attributes[key] = {str(k): v for k, v in variable.attrs.items()}
            dims[key] = tuple(str(dim) for dim in variable.dims)
    return Container(path, kind, arrays, attributes, dims, faults or {})


def _open(path: Path, engine: Engine, options: dict[str, Any], texts: Sequence[str] = ()) -> Any:
    import xarray

    return xarray.open_dataset(
        path,
        engine=engine,
        cache=False,
        decode_times=False,
        decode_timedelta=False,
        drop_variables=list(texts),
        backend_kwargs=options,
    )


def _open_scipy(path: Path) -> Any:
    return _open(path, "scipy", {})


def _open_h5netcdf(path: Path) -> Any:
    return _open(path, "h5netcdf", {"phony_dims": "access"})


def _open_zarr(path: Path) -> Any:
    """A Zarr folder without its arrays of text, which are never decoded."""
    import zarr

    group = zarr.open_group(str(path), mode="r", use_consolidated=False)
    texts = [name for name, array in group.arrays() if np.dtype(array.dtype).kind not in NUMBERS + "mM"]
    return _open(path, "zarr", {"consolidated": False}, texts)


_OPENERS = {"scipy": _open_scipy, "h5netcdf": _open_h5netcdf, "zarr": _open_zarr}
