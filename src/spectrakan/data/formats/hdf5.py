"""HDF5 and netCDF files as containers: arrays stay in the file and are read by block. xarray opens netCDF.

A file is looked through once before anything in it is read. It is refused if it can lead to other files
(external links, external storage, virtual datasets), if its groups are nested without end, or if an array
declares far more bytes than are stored.

A file behind an address (`hf://`, `https://`, `s3://`, ...) is read through fsspec: the parts that a window touches
are fetched when they are read, and nothing is kept on disk. Heaps of texts cannot be checked before they are read, as
those of local files are: read addresses that you trust.

    hf://datasets/ORGANISATION/NAME/path/in/it.hdf5      needs huggingface_hub (extra `hub`)
"""

import math
import mmap
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py

from spectrakan.data.container import Container, FileSource, opened, size_in_bytes, stamp_of
from spectrakan.data.decoding import MAX_OBJECTS, decoding, mismatch, require_size, walk
from spectrakan.errors import ConfigError, DataFormatError, require_package
from spectrakan.fields import Source

ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+")
FETCHED_BYTES = 2**20
"""Bytes that are fetched at a time from an address."""
PLAIN_FILTERS = {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
"""Filters that keep the number of bytes; at most one filter beside them may compress."""

SEARCHED_BYTES = 2**30
"""Files up to this size are searched for damaged heaps; in larger ones the search takes too long."""
DESCRIBED_BY_TEXTS = ("dimensions", "boundary_conditions", "t0_fields")
"""Groups of The Well's layout, which says in texts of variable length what its arrays are."""
CLASSIC = (b"CDF\x01", b"CDF\x02")
"""How a classic netCDF file begins; netCDF-4 is HDF5."""
MAPPED_BYTES = 2**28
"""Classic files of more bytes than this are mapped into memory instead of read."""
HEAP = b"GCOL\x01\x00\x00\x00"
"""Four letters, version 1 and three reserved bytes open a global heap, followed by its size."""
HEAP_HEADER = 16
"""Bytes before the first object of a heap, and bytes before the content of each object."""


def is_remote(path: Path | str) -> bool:
    """Whether a path is an address; `Path` folds the two slashes of one.

    >>> is_remote("hf://datasets/a/b.hdf5"), is_remote(Path("s3://bucket/b.h5")), is_remote("/data/b.h5")
    (True, True, False)
    """
    return ADDRESS.match(str(path)) is not None


def open_hdf5(path: Path, *, reverse: bool = False) -> Container:
    """List the arrays and attributes of an HDF5 file; no field is read."""
    stamp = None if is_remote(path) else stamp_of(path)
    arrays: dict[str, Source] = {}
    attributes: dict[str, dict[str, Any]] = {}
    faults: dict[str, str] = {}
    with decoding(path, kind="HDF5"):
        file = opened(path, stamp, _open_file)
        texts = set(DESCRIBED_BY_TEXTS) <= set(file)
        if texts:
            require_sound_heaps(path)
        attributes[""] = _attributes(file, texts=texts)
        for name, item in _objects(path, file):
            attributes[name] = _attributes(item, texts=texts)
            if isinstance(item, h5py.Dataset) and item.shape is not None:
                _require_bounded(path, name, item)
                if fault := _unwritten(item):
                    faults[name] = fault
                if item.dtype.kind == "O":
                    require_sound_heaps(path)
                shape = tuple(item.shape[::-1] if reverse else item.shape)
                arrays[name] = FileSource(path, name, shape, item.dtype, stamp, _open_file, reverse)
    return Container(path, "HDF5", arrays, attributes, faults=faults)


def require_sound_heaps(path: Path) -> None:
    """Refuse impossible sizes in a global heap, where texts of variable length and references lie.

    A heap has no checksum, and the library follows the sizes written in it: one flipped bit can send it round
    in circles inside C code, where no signal and no exception reaches it.
    """
    if is_remote(path) or not 0 < path.stat().st_size <= SEARCHED_BYTES:
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(HEAP)
        while start >= 0:
            if not _sizes_add_up(content, start):
                raise mismatch(path, "", "sound heaps", f"impossible sizes in the heap at byte {start}")
            start = content.find(HEAP, start + len(HEAP))


def _sizes_add_up(content: mmap.mmap, start: int) -> bool:
    """Walk from object to object as the library does; each must end inside the heap, the heap in the file."""
    if start + HEAP_HEADER > len(content):
        return False
    (total,) = struct.unpack_from("<Q", content, start + 8)
    offset, end = start + HEAP_HEADER, start + total
    if total < HEAP_HEADER or end > len(content):
        return False
    while offset + HEAP_HEADER <= end:
        index, _, size = struct.unpack_from("<HH4xQ", content, offset)
        # Object 0 is the free rest, whose size counts its own header; others are padded to 8 bytes.
        step = size if index == 0 else HEAP_HEADER + -(-size // 8) * 8
        if step < HEAP_HEADER or offset + step > end:
            return False
        offset += step
    return True


def _open_file(path: Path) -> Any:
    """The HDF5 file at a path or an address."""
    if not is_remote(path):
        return h5py.File(path, "r")
    address = ADDRESS.sub(r"\1://", str(path), count=1)
    import fsspec  # which torch brings

    try:
        return h5py.File(fsspec.open(address, "rb", block_size=FETCHED_BYTES).open(), "r")
    except (ImportError, ValueError) as problem:
        raise ConfigError(f"cannot open '{address}': {problem}; hf:// needs spectrakan[hub]") from None
    except OSError as problem:
        raise DataFormatError(f"cannot read '{address}' as HDF5: {problem}") from None


def _objects(path: Path, file: h5py.File) -> Iterator[tuple[str, Any]]:
    """Every object once, by its first name, opened from its parent so that the time is linear in their number.

    Soft links are not followed; they stay inside the file, since links to other files are refused.
    """
    seen = {_address(file)}

    def inside(item: Any) -> Iterator[tuple[str, Any]]:
        if not isinstance(item, h5py.Group):
            return
        if len(item) > MAX_OBJECTS:
            raise mismatch(path, item.name, f"at most {MAX_OBJECTS} objects", f"{len(item)}")
        for key in item:
            link = item.get(key, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                remedy = "copy the arrays into one file"
                raise mismatch(path, key, "arrays inside the file", f"a link to the file '{link.filename}'", remedy)
            if isinstance(link, h5py.HardLink) and _address(child := item[key]) not in seen:
                seen.add(_address(child))
                yield key, child

    return walk(path, file, inside)


def _address(item: Any) -> tuple[int, int]:
    info = h5py.h5o.get_info(item.id)
    return info.fileno, info.addr


def _attributes(item: Any, *, texts: bool) -> dict[str, Any]:
    """Attributes as plain text and numbers.

    What has variable length (some texts, references) is listed without its content: it lies in a heap that has
    no checksum; `texts` reads texts of that kind, for a layout that needs them.
    """
    result: dict[str, Any] = {}
    for name in item.attrs:
        kind = item.attrs.get_id(name).dtype
        variable = kind.kind == "O" and not (texts and h5py.check_string_dtype(kind) is not None)
        value = "" if variable else item.attrs[name]
        result[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return result


def _require_bounded(path: Path, name: str, dataset: h5py.Dataset) -> None:
    """Refuse storage in other files, and arrays that declare far more bytes than are stored."""
    if dataset.external or dataset.is_virtual:
        elsewhere = (
            f"storage in the file '{dataset.external[0][0]}'"
            if dataset.external
            else "a virtual dataset, which reads other files"
        )
        raise mismatch(path, name, "numbers inside the file", elsewhere, "copy the arrays into one file")
    if dataset.chunks is None:
        return
    plan = dataset.id.get_create_plist()
    filters = [plan.get_filter(index)[0] for index in range(plan.get_nfilters())]
    if len([number for number in filters if number not in PLAIN_FILTERS]) > 1:
        raise mismatch(path, name, "at most one compressing filter", f"the filters {filters}")
    piece = size_in_bytes(dataset.chunks, dataset.dtype)
    stored, written = dataset.id.get_storage_size(), dataset.id.get_num_chunks()
    require_size(path, name, piece * written, stored, piece=piece)
    if stored > 1.1 * piece * written + 4096 * written:
        raise mismatch(path, name, f"chunks of at most {piece} bytes", f"{stored} bytes in {written} chunks")


def _unwritten(dataset: h5py.Dataset) -> str:
    """What is missing of a dataset that was reserved and not written, which HDF5 reads as zeros silently."""
    if not dataset.size:
        return ""
    if dataset.chunks is None:
        return "" if dataset.id.get_storage_size() else "space that was never written"
    expected = math.prod(-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True))
    written = dataset.id.get_num_chunks()
    return "" if written >= expected else f"{written} of {expected} chunks: its writer did not finish"


def open_netcdf(path: Path, faults: Mapping[str, str]) -> Container:
    """A netCDF file: classic through SciPy, netCDF-4 through h5netcdf, after `open_hdf5` has looked through it.

    No field is read. xarray unpacks integers and replaces missing values by NaN, by the conventions of netCDF.
    """
    stamp = stamp_of(path)
    arrays: dict[str, Source] = {}
    with decoding(path, kind="netCDF"):
        require_package("xarray", "climate", f"'{path}'")
        if h5py.is_hdf5(path):
            require_package("h5netcdf", "climate", f"'{path}'")
            require_sound_heaps(path)
        dataset = opened(path, stamp, _open_dataset)
        attributes: dict[str, dict[str, Any]] = {"": {str(k): v for k, v in dataset.attrs.items()}}
        dims: dict[str, tuple[str, ...]] = {}
        for name, variable in dataset.variables.items():
            key = str(name)
            arrays[key] = FileSource(path, key, tuple(variable.shape), variable.dtype, stamp, _open_dataset)
            attributes[key] = {str(k): v for k, v in variable.attrs.items()}
            dims[key] = tuple(str(dim) for dim in variable.dims)
    return Container(path, "netCDF", arrays, attributes, dims, faults)


def _open_dataset(path: Path) -> Any:
    import xarray

    # A map into memory cannot be closed while an error on its way holds arrays of it; small files are read whole.
    engine: dict[str, Any] = {"engine": "scipy", "backend_kwargs": {"mmap": path.stat().st_size > MAPPED_BYTES}}
    if h5py.is_hdf5(path):
        engine = {"engine": "h5netcdf", "backend_kwargs": {"phony_dims": "access"}}
    return xarray.open_dataset(path, cache=False, decode_times=False, decode_timedelta=False, **engine)
