"""Zarr folders (versions 2 and 3) as containers.

Arrays that name their axes go through xarray, others through zarr itself. The folder is looked through before
anything is decoded: it may hold regular files only, every codec must be in the lists below, a chunk may not
inflate beyond its declared size, and an array with absent chunks is refused, because Zarr reads them as zeros.
Arrays in shards are refused.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import math
import os
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from spectrakan.config import read_regular
from spectrakan.data.container import Container, FileSource, opened, size_in_bytes, stamp_of
from spectrakan.data.decoding import decoding, mismatch, missing_package, require_size, walk
from spectrakan.data.formats.netcdf import open_labelled, open_labelled_zarr
from spectrakan.fields import Source

METADATA = (".zgroup", ".zarray", "zarr.json")
METADATA_BYTES = 2**24
"""Largest accepted file of metadata."""
NUMCODECS = (0, 16, 6)
"""Oldest accepted version of numcodecs; earlier ones can be made to run code from a store."""

COMPRESSORS = {"zlib", "gzip", "blosc", "zstd", "lz4"}
FILTERS = {"bytes", "transpose", "shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "packbits"}
FILTERS |= {"astype", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"}
"""Codecs that arrays of numbers may use; at most one of them may compress."""
TEXT = {"vlen-utf8", "vlen-bytes"}
"""Codecs of arrays of text, which are left out and never decoded."""
_ZSTD_FRAME, _ZSTD_BLOCK = 0xFD2FB528, 2**17


def is_zarr(path: Path) -> bool:
    """Whether a folder has Zarr's metadata at its top."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


def open_zarr(path: Path) -> Container:
    """List the arrays of a Zarr group; no field is read."""
    files = _files(path)
    counts = Counter(str(folder) for name in files for folder in PurePosixPath(name).parents)
    arrays: dict[str, Source] = {}
    faults: dict[str, str] = {}
    named: list[bool] = []
    stamp = stamp_of(path)
    with decoding(path, kind="Zarr"):
        group = opened(path, stamp, _open_store)
        attributes = {"": dict(group.attrs)}
        for key, array in walk(path, group, _members):
            if hasattr(array, "members") or (compressor := _compressor(path, key, array.metadata)) is None:
                continue
            present, fault = _missing(key, array, files, counts[key])
            if fault:
                faults[key] = fault
            _require_bounded(path, key, array, {name: files[name] for name in present}, compressor)
            arrays[key] = FileSource(path, key, tuple(array.shape), np.dtype(array.dtype), stamp, _open_store)
            attributes[key] = dict(array.attrs)
            named.append(bool(_dimension_names(array)))
    if named and all(named) and not any("/" in key for key in arrays):
        return open_labelled(path, open_labelled_zarr, "Zarr", faults=faults)
    return Container(path, "Zarr", arrays, attributes, faults=faults)


def _open_store(path: Path) -> Any:
    try:
        import zarr

        version = importlib.metadata.version("numcodecs")
    except ImportError:
        raise missing_package(path, "zarr", "climate") from None
    if tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < NUMCODECS:
        wanted = ".".join(map(str, NUMCODECS))
        raise missing_package(path, f"numcodecs >= {wanted} (found {version}, which is unsafe)", "climate")
    # Consolidated metadata are a second copy that could contradict the metadata checked here.
    return zarr.open_group(str(path), mode="r", use_consolidated=False)


def _files(path: Path) -> dict[str, int]:
    """Names and sizes of all files; a symbolic link, a device or a deep folder is refused."""
    found: dict[str, int] = {}
    with decoding(path, kind="Zarr"):
        for name, entry in walk(path, path.resolve(), _folder_entries, "folders", math.inf):
            if entry.is_file(follow_symlinks=False):
                found[name] = entry.stat(follow_symlinks=False).st_size
            elif not entry.is_dir(follow_symlinks=False):
                kind = "a symbolic link" if entry.is_symlink() else "a device, pipe or socket"
                raise mismatch(path, name, "a regular file or folder", kind)
    for name in found:
        if name.rpartition("/")[2] in (*METADATA, ".zattrs", ".zmetadata"):
            with decoding(path, name, kind="Zarr metadata"):
                json.loads(read_regular(path / name, METADATA_BYTES))
    return found


def _folder_entries(parent: Any) -> Iterable[tuple[str, os.DirEntry[str]]]:
    if isinstance(parent, os.DirEntry) and not parent.is_dir(follow_symlinks=False):
        return ()
    with os.scandir(parent) as entries:
        return [(entry.name, entry) for entry in entries]


def _members(item: Any) -> Iterable[tuple[str, Any]]:
    """Arrays and groups inside a group, as zarr itself finds them."""
    return sorted(item.members(max_depth=0)) if hasattr(item, "members") else ()


def _dimension_names(array: Any) -> Any:
    return getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")


def _compressor(path: Path, key: str, metadata: Any) -> str | None:
    """Name of the one compressor of an array, empty without one; None for text; other codecs are refused."""
    if metadata.zarr_format == 2:
        codecs = [*(metadata.filters or ()), *([metadata.compressor] if metadata.compressor else [])]
        names = [str(codec.codec_id) for codec in codecs]
    else:
        names = [str(codec.to_dict()["name"]).removeprefix("numcodecs.") for codec in metadata.codecs]
    unknown = sorted(set(names) - COMPRESSORS - FILTERS - TEXT)
    if unknown:
        known = f"codecs of {', '.join(sorted(COMPRESSORS | FILTERS))}"
        raise mismatch(path, key, known, f"the codec {unknown[0]}", "a foreign codec could run code")
    compressors = [name for name in names if name in COMPRESSORS]
    if len(compressors) > 1:
        raise mismatch(path, key, "at most one compressor", " and ".join(compressors))
    return None if set(names) & TEXT else "".join(compressors)


def _missing(key: str, array: Any, files: Mapping[str, int], most: int) -> tuple[list[str], str]:
    """The files of an array's chunks, of which there are at most so many, and what is missing of them."""
    counts = [-(-size // chunk) for size, chunk in zip(array.shape, array.chunks, strict=True)]
    expected = math.prod(counts)
    names = map(array.metadata.encode_chunk_key, itertools.product(*map(range, counts)))
    present = [] if expected > most else [name for name in (f"{key}/{name}" for name in names) if name in files]
    if len(present) == expected:
        return present, ""
    return present, (
        "absent chunks, which Zarr reads as its fill value: its writer did not finish, or left out chunks of "
        "constant numbers (write it with zarr.config.set({'array.write_empty_chunks': True}))"
    )


def _require_bounded(path: Path, key: str, array: Any, chunks: Mapping[str, int], compressor: str) -> None:
    """Refuse chunks, given by file and size, that inflate beyond what the array declares."""
    piece = size_in_bytes(array.chunks, np.dtype(array.dtype))
    require_size(path, key, piece * len(chunks), sum(chunks.values()), piece=piece)
    for name, size in chunks.items():
        with (path / name).open("rb") as stream:
            inflated = max(size, _inflated(stream, size, compressor))
        if inflated > 8 * piece + 2**16:  # a filter may store numbers of a wider type
            raise mismatch(path, name, f"chunks of {piece} bytes", f"{inflated} bytes after decoding")


def _inflated(stream: IO[bytes], size: int, compressor: str) -> int:
    """Size after decompression as the chunk declares it; deflate declares none, but its ratio is bounded."""
    if compressor == "zstd":
        return _inflated_zstd(stream, size)
    head = stream.read(min(size, 16))
    if compressor == "blosc" and len(head) >= 8:
        return int(struct.unpack_from("<I", head, 4)[0])
    return int(struct.unpack_from("<I", head)[0]) if compressor == "lz4" and len(head) >= 4 else 0


def _inflated_zstd(stream: IO[bytes], end: int) -> int:
    """Sum over the frames of the content size (RFC 8878, 3.1.1), or of the largest sizes of their blocks."""
    total = 0
    while stream.tell() + 6 <= end:
        magic, descriptor = struct.unpack("<IB", stream.read(5))
        if magic != _ZSTD_FRAME:
            break
        single = descriptor >> 5 & 1
        width = (single, 2, 4, 8)[descriptor >> 6]
        stream.seek((1 - single) + (0, 1, 2, 4)[descriptor & 3], os.SEEK_CUR)
        content = int.from_bytes(stream.read(width), "little") + (256 if width == 2 else 0)
        blocks, last = 0, False
        while not last and stream.tell() + 3 <= end:
            header = int.from_bytes(stream.read(3), "little")
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            blocks += size if kind < 2 else _ZSTD_BLOCK
            stream.seek(1 if kind == 1 else size, os.SEEK_CUR)
        stream.seek(4 * (descriptor >> 2 & 1), os.SEEK_CUR)
        total += content if width else blocks
    return total
