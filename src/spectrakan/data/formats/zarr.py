"""Zarr folders (versions 2 and 3) as containers.

Arrays that name their axes go through xarray, others through zarr itself. The folder is looked through before
anything is decoded: it may hold regular files only, every codec must be in the lists below, a chunk may not
inflate beyond its declared size, and an array with absent chunks is refused, because Zarr reads them as zeros.
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container
from spectrakan.data.decoding import MAX_DEPTH, MAX_OBJECTS, decoding, mismatch, missing_package, require_size
from spectrakan.data.formats.netcdf import open_labelled
from spectrakan.data.source import Block, Source, Stamp, opened, size_in_bytes

METADATA = (".zgroup", ".zarray", "zarr.json")
NUMCODECS = (0, 16, 6)
"""Oldest accepted version of numcodecs; earlier ones can be made to run code from a store."""

COMPRESSORS = {"zlib", "gzip", "blosc", "zstd", "lz4"}
FILTERS = {"bytes", "transpose", "shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "packbits"}
FILTERS |= {"astype", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"}
"""Codecs that arrays of numbers may use; at most one of them may compress."""
TEXT = {"vlen-utf8", "vlen-bytes"}
"""Codecs of arrays of text, which are left out and never decoded."""
_ABSENT = 2**64 - 1
_ZSTD_FRAME, _ZSTD_BLOCK = 0xFD2FB528, 2**17


@dataclass(frozen=True)
class _Store:
    """An opened group; a folder of files holds no handle to close."""

    group: Any

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class ZarrSource:
    """An array of a Zarr group."""

    path: Path
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stamp: Stamp

    def __getitem__(self, block: Block) -> npt.NDArray[Any]:
        """A block; only the chunks that it touches are read."""
        with decoding(self.path, self.key, kind="Zarr"):
            return np.asarray(opened(self.path, self.stamp, _open_store).group[self.key][block])


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
    stamp = Stamp.of(path)
    with decoding(path, kind="Zarr"):
        group = opened(path, stamp, _open_store).group
        attributes = {"": dict(group.attrs)}
        for key, array in _arrays(path, group):
            if (compressor := _compressor(path, key, array.metadata)) is None:
                continue
            chunks = _Chunks(path, key, array, files)
            if fault := chunks.missing(counts[key]):
                faults[key] = fault
            chunks.require_bounded(compressor)
            arrays[key] = ZarrSource(path, key, tuple(array.shape), np.dtype(array.dtype), stamp)
            attributes[key] = dict(array.attrs)
            named.append(bool(_dimension_names(array)))
    if named and all(named) and not any("/" in key for key in arrays):
        return open_labelled(path, "zarr", "Zarr", faults=faults)
    return Container(path, "Zarr", arrays, attributes, faults=faults)


def _open_store(path: Path) -> _Store:
    try:
        import zarr

        version = importlib.metadata.version("numcodecs")
    except ImportError:
        raise missing_package(path, "zarr", "climate") from None
    if tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < NUMCODECS:
        wanted = ".".join(map(str, NUMCODECS))
        raise missing_package(path, f"numcodecs >= {wanted} (found {version}, which is unsafe)", "climate")
    # Consolidated metadata are a second copy that could contradict the metadata checked here.
    return _Store(zarr.open_group(str(path), mode="r", use_consolidated=False))


def _files(path: Path) -> dict[str, int]:
    """Names and sizes of all files; a symbolic link, a device or a deep folder is refused."""
    found: dict[str, int] = {}
    waiting = [("", path.resolve())]
    with decoding(path, kind="Zarr"):
        while waiting:
            prefix, folder = waiting.pop()
            if prefix.count("/") > MAX_DEPTH:
                raise mismatch(path, f"{prefix[:40]}...", f"folders at most {MAX_DEPTH} deep", "deeper ones")
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((f"{prefix}{entry.name}/", Path(entry.path)))
                    elif entry.is_file(follow_symlinks=False):
                        found[prefix + entry.name] = entry.stat(follow_symlinks=False).st_size
                    else:
                        found_kind = "a symbolic link" if entry.is_symlink() else "a device, pipe or socket"
                        raise mismatch(path, prefix + entry.name, "a regular file or folder", found_kind)
    for name in found:
        if name.rpartition("/")[2] in METADATA:
            with decoding(path, name, kind="Zarr metadata"):
                json.loads((path / name).read_bytes())
    return found


def _arrays(path: Path, group: Any) -> Iterator[tuple[str, Any]]:
    """All arrays as zarr itself finds them, with their names."""
    waiting, count = [("", group)], 0
    while waiting:
        prefix, current = waiting.pop()
        for name, array in sorted(current.arrays()):
            yield prefix + name, array
            count += 1
        inner = sorted(current.groups(), reverse=True)
        waiting += [(f"{prefix}{name}/", item) for name, item in inner]
        if count + len(waiting) > MAX_OBJECTS:
            raise mismatch(path, prefix, f"at most {MAX_OBJECTS} objects", "more")


def _dimension_names(array: Any) -> Any:
    return getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")


def _compressor(path: Path, key: str, metadata: Any) -> str | None:
    """Name of the one compressor of an array, empty without one; None for text; other codecs are refused."""
    if metadata.zarr_format == 2:
        codecs = [*(metadata.filters or ()), *([metadata.compressor] if metadata.compressor else [])]
        names = [str(codec.codec_id) for codec in codecs]
    else:
        names = _names([codec.to_dict() for codec in metadata.codecs])
    unknown = sorted(set(names) - COMPRESSORS - FILTERS - TEXT)
    if unknown:
        known = f"codecs of {', '.join(sorted(COMPRESSORS | FILTERS))}"
        raise mismatch(path, key, known, f"the codec {unknown[0]}", "a foreign codec could run code")
    compressors = [name for name in names if name in COMPRESSORS]
    if len(compressors) > 1:
        raise mismatch(path, key, "at most one compressor", " and ".join(compressors))
    return None if set(names) & TEXT else "".join(compressors)


def _names(codecs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of version 3 codecs; a shard is what is inside it, if its index is plain."""
    names = [str(codec["name"]).removeprefix("numcodecs.") for codec in codecs]
    if names != ["sharding_indexed"]:
        return names
    inner = codecs[0]["configuration"]
    index = [str(codec["name"]) for codec in inner["index_codecs"]]
    plain = index in (["bytes"], ["bytes", "crc32c"])
    return [str(codec["name"]).removeprefix("numcodecs.") for codec in inner["codecs"]] + ([] if plain else index)


class _Chunks:
    """The stored chunks of one array: which there are, and how large each is after decoding."""

    def __init__(self, path: Path, key: str, array: Any, files: Mapping[str, int]) -> None:
        self.path, self.key, self.array = path, key, array
        self.files = files
        self.outer = tuple(array.shards or array.chunks)
        self.counts = [-(-size // chunk) for size, chunk in zip(array.shape, self.outer, strict=True)]
        self.piece = size_in_bytes(array.chunks, np.dtype(array.dtype))
        self.inner = math.prod(big // small for big, small in zip(self.outer, array.chunks, strict=True))
        self.present: list[tuple[str, int, int]] = []
        """File, offset and size of each stored chunk."""

    def missing(self, most: int) -> str:
        """What is missing of the array, which has at most so many files; empty where it is whole."""
        expected = math.prod(self.counts)
        if expected <= most:
            encode = self.array.metadata.encode_chunk_key
            for coordinates in itertools.product(*map(range, self.counts)):
                name = f"{self.key}/{encode(coordinates)}"
                if name in self.files:
                    self.present += self._parts(name)
        if len(self.present) >= expected * self.inner:
            return ""
        return (
            "absent chunks, which Zarr reads as its fill value: its writer did not finish, or left out chunks of "
            "constant numbers (write it with zarr.config.set({'array.write_empty_chunks': True}))"
        )

    def require_bounded(self, compressor: str) -> None:
        """Refuse chunks that inflate beyond what the array declares."""
        stored = sum(size for _, _, size in self.present)
        require_size(self.path, self.key, self.piece * len(self.present), stored, piece=self.piece)
        limit = 8 * self.piece + 2**16  # a filter may store numbers of a wider type
        for name, chunks in itertools.groupby(self.present, key=lambda chunk: chunk[0]):
            with (self.path / name).open("rb") as stream:
                for _, offset, size in chunks:
                    inflated = max(size, _inflated(stream, offset, size, compressor))
                    if inflated > limit:
                        expected = f"chunks of {self.piece} bytes"
                        raise mismatch(self.path, name, expected, f"{inflated} bytes after decoding")

    def _parts(self, name: str) -> list[tuple[str, int, int]]:
        """The chunks in a file: one, or the chunks that the index of a shard lists."""
        size = self.files[name]
        if not self.array.shards:
            return [(name, 0, size)]
        config = self.array.metadata.codecs[0].to_dict()["configuration"]
        length = 16 * self.inner + 4 * (len(config["index_codecs"]) - 1)
        if length > size:
            return []
        with (self.path / name).open("rb") as stream:
            stream.seek(0 if str(config["index_location"]) == "start" else size - length)
            index = np.frombuffer(stream.read(16 * self.inner), "<u8").reshape(-1, 2)
        return [(name, int(start), int(bytes_)) for start, bytes_ in index if start < size and start != _ABSENT]


def _inflated(stream: IO[bytes], offset: int, size: int, compressor: str) -> int:
    """Size after decompression as the chunk declares it; deflate declares none, but its ratio is bounded."""
    stream.seek(offset)
    if compressor == "zstd":
        return _inflated_zstd(stream, offset + size)
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
