"""npz files as containers. Nothing in them is ever unpickled.

Members up to `HELD_BYTES` are read whole, which checks their CRC-32. Larger ones are mapped into memory where
they are not compressed; compressed ones can only be read whole.
"""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, mismatch, require_size
from spectrakan.data.lazy import HELD_BYTES
from spectrakan.data.source import Block, Source, Stamp, size_in_bytes

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
"""How a zip file begins: with its first member, or with its end if it is empty."""
_MOST_HEADER = 10_000
"""NumPy's own limit on the text that describes an array."""


@dataclass(frozen=True)
class MappedSource:
    """A member of an npz file without compression, mapped into memory while a block of it is read."""

    path: Path
    key: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    stamp: Stamp

    def __getitem__(self, block: Block) -> npt.NDArray[Any]:
        """A block; only its pages are touched."""
        self.stamp.check(self.path)
        with decoding(self.path, self.key, kind="npz"):
            mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)
            return np.array(mapped[block])


def open_npz(path: Path) -> Container:
    """The members of an npz file, by name without `.npy`."""
    arrays: dict[str, Source] = {}
    stamp = Stamp.of(path)
    with decoding(path, kind="npz"), zipfile.ZipFile(path) as archive:
        require_bounded(path, archive, {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
        for member in archive.infolist():
            # Opening compares the two copies of a name in the archive, so that a damaged name hides no array.
            archive.open(member).close()
            if member.filename.endswith(".npy"):
                key = member.filename.removesuffix(".npy")
                if key in arrays:
                    raise mismatch(path, key, "one array of a name", "two")
                arrays[key] = _member(path, stamp, archive, member)
    return Container(path, "npz", arrays)


def require_bounded(path: Path, archive: zipfile.ZipFile, methods: set[int]) -> None:
    """Refuse an archive whose members declare far more bytes than it has, or use another compression."""
    members = archive.infolist()
    if foreign := [member.filename for member in members if member.compress_type not in methods]:
        raise mismatch(path, foreign[0], "the compression that its writers use", "another")
    require_size(path, "", sum(member.file_size for member in members), path.stat().st_size)


def _member(path: Path, stamp: Stamp, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Source:
    key = member.filename.removesuffix(".npy")
    with decoding(path, key, kind="npz"), archive.open(member) as stream:
        shape, fortran, dtype = _read_header(stream)
        if dtype.hasobject:
            # Its content would be a pickle; the name is kept for error messages.
            return np.empty((), object)
        if size_in_bytes(shape, dtype) > member.file_size:
            raise mismatch(path, key, f"{shape} numbers of type {dtype}", f"{member.file_size} bytes")
        if size_in_bytes(shape, dtype) > HELD_BYTES and member.compress_type == zipfile.ZIP_STORED:
            offset = _data_offset(path, member) + stream.tell()
            return MappedSource(path, key, offset, shape, dtype, "F" if fortran else "C", stamp)
    with decoding(path, key, kind="npz"), archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read()  # to the end, where the checksum is compared
        return np.asarray(array)


def _read_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = reader(stream, max_header_size=_MOST_HEADER)
    return tuple(shape), bool(fortran), dtype


def _data_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """First byte of a member: after its local header, which holds two lengths at bytes 26 to 29."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(30)
        name, extra = struct.unpack("<HH", header[26:30])
    return member.header_offset + 30 + int(name) + int(extra)
