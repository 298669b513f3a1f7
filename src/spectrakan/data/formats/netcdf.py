"""netCDF files as containers; xarray opens them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spectrakan.data.container import Container, FileSource, opened, stamp_of
from spectrakan.data.decoding import decoding
from spectrakan.data.formats.hdf5 import require_sound_heaps
from spectrakan.errors import require_package
from spectrakan.fields import Source

CLASSIC = (b"CDF\x01", b"CDF\x02")


def open_netcdf(path: Path, *, faults: Mapping[str, str] | None = None, classic: bool = False) -> Container:
    """A netCDF file: classic through SciPy, netCDF-4 through h5netcdf, after `open_hdf5` has looked through it.

    No field is read. xarray unpacks integers and replaces missing values by NaN, by the conventions of netCDF.
    """
    opener, stamp = _open_classic if classic else _open_netcdf4, stamp_of(path)
    arrays: dict[str, Source] = {}
    with decoding(path, kind="netCDF"):
        if not classic:
            require_sound_heaps(path)
        for package in ("xarray",) if classic else ("xarray", "h5netcdf"):
            require_package(package, "climate", f"'{path}'")
        dataset = opened(path, stamp, opener)
        attributes: dict[str, dict[str, Any]] = {"": {str(k): v for k, v in dataset.attrs.items()}}
        dims: dict[str, tuple[str, ...]] = {}
        for name, variable in dataset.variables.items():
            key = str(name)
            arrays[key] = FileSource(path, key, tuple(variable.shape), variable.dtype, stamp, opener)
            attributes[key] = {str(k): v for k, v in variable.attrs.items()}
            dims[key] = tuple(str(dim) for dim in variable.dims)
    return Container(path, "netCDF", arrays, attributes, dims, faults or {})


def _open_classic(path: Path) -> Any:
    return _open(path, engine="scipy")


def _open_netcdf4(path: Path) -> Any:
    return _open(path, engine="h5netcdf", backend_kwargs={"phony_dims": "access"})


def _open(path: Path, **options: Any) -> Any:
    import xarray

    return xarray.open_dataset(path, cache=False, decode_times=False, decode_timedelta=False, **options)
