"""Labelled sets through xarray, which knows the conventions of packed numbers and missing values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, missing_package
from spectrakan.data.handles import opened
from spectrakan.data.source import Block, Source, Stamp

Engine = Literal["scipy", "h5netcdf", "zarr"]


@dataclass(frozen=True)
class LabelledSource:
    """A variable of a set that xarray opens; packed integers are unpacked and missing values are NaN."""

    path: Path
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stamp: Stamp
    engine: Engine

    def read(self, block: Block) -> npt.NDArray[Any]:
        """A block, by xarray's lazy indexing."""
        with decoding(self.path, self.key, kind="netCDF or Zarr"):
            dataset = opened(self.path, self.stamp, _OPENERS[self.engine])
            return np.asarray(dataset.variables[self.key][block].values)


def open_labelled(path: Path, engine: Engine, kind: str) -> Container:
    """List the variables of a set; no field is read."""
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
    return Container(path, kind, arrays, attributes, dims)


def _open(path: Path, engine: Engine, options: dict[str, Any]) -> Any:
    import xarray

    return xarray.open_dataset(
        path,
        engine=engine,
        cache=False,
        decode_times=False,
        decode_timedelta=False,
        backend_kwargs=options,
    )


def _open_scipy(path: Path) -> Any:
    return _open(path, "scipy", {})


def _open_h5netcdf(path: Path) -> Any:
    return _open(path, "h5netcdf", {"phony_dims": "access"})


def _open_zarr(path: Path) -> Any:
    return _open(path, "zarr", {"consolidated": False})


_OPENERS = {"scipy": _open_scipy, "h5netcdf": _open_h5netcdf, "zarr": _open_zarr}
