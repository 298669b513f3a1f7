"""File formats: how bytes become arrays, and what the arrays mean."""

from pathlib import Path

import h5py

from spectrakan.data.container import Container
from spectrakan.data.decoding import regular_file, require_size
from spectrakan.data.formats.archives import MAGIC, open_archive, open_torch
from spectrakan.data.formats.hdf5 import CLASSIC, is_remote, open_hdf5, open_netcdf
from spectrakan.data.formats.mat import HEADER_5, HEADER_73, open_mat, open_mat73
from spectrakan.errors import DataFormatError


def open_container(path: Path) -> Container:
    """The arrays of a file, by the kind that its first bytes show."""
    if is_remote(path):
        return open_hdf5(path)
    status = regular_file(path)
    try:
        with path.open("rb") as file:
            head = file.read(32)
    except OSError as problem:
        raise DataFormatError(f"cannot read '{path}': {problem.strerror}") from None
    if not head:
        raise DataFormatError(f"'{path}' is empty")
    if h5py.is_hdf5(path):
        if head.startswith(HEADER_73):
            return open_mat73(path)
        container = open_hdf5(path)
        # netCDF-4: an attribute says so, or axes have names.
        scales = (str(attributes.get("CLASS")) == "DIMENSION_SCALE" for attributes in container.attributes.values())
        named = container.attribute("_NCProperties") is not None or any(scales)
        return open_netcdf(path, container.faults) if named else container
    # Other kinds are read whole: a sparse file must not declare what is not on the disk.
    require_size(path, "", status.st_size, min(status.st_size, 512 * status.st_blocks))
    if head.startswith(CLASSIC):
        return open_netcdf(path, {})
    if head.startswith(HEADER_5):
        return open_mat(path)
    if head.startswith(MAGIC):
        return open_archive(path)
    if head.startswith(b"\x80") and path.suffix in {".pt", ".pth"}:
        return open_torch(path)  # the format of torch before 1.6, a bare pickle that is read without running it
    raise DataFormatError(f"'{path}' begins with {head[:8]!r}, which is none of HDF5, npz, netCDF, .pt and .mat")
