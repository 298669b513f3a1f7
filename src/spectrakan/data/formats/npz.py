"""npz files as containers. Members are read whole, which checks their CRC-32, and are never unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, mismatch, require_size
from spectrakan.data.source import size_in_bytes
from spectrakan.fields import Source

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
"""How a zip file begins: with its first member, or with its end if it is empty."""
_MOST_HEADER = 10_000
"""NumPy's own limit on the text that describes an array."""


def open_npz(path: Path) -> Container:
    """The members of an npz file, by name without `.npy`."""
    arrays: dict[str, Source] = {}
    with decoding(path, kind="npz"), zipfile.ZipFile(path) as archive:
        require_bounded(path, archive, {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
        for member in archive.infolist():
            # Opening compares the two copies of a name in the archive, so that a damaged name hides no array.
            archive.open(member).close()
            if member.filename.endswith(".npy"):
                key = member.filename.removesuffix(".npy")
                if key in arrays:
                    raise mismatch(path, key, "one array of a name", "two")
                arrays[key] = _member(path, archive, member)
    return Container(path, "npz", arrays)


def require_bounded(path: Path, archive: zipfile.ZipFile, methods: set[int]) -> None:
    """Refuse an archive whose members declare far more bytes than it has, or use another compression."""
    members = archive.infolist()
    if foreign := [member.filename for member in members if member.compress_type not in methods]:
        raise mismatch(path, foreign[0], "the compression that its writers use", "another")
    require_size(path, "", sum(member.file_size for member in members), path.stat().st_size)


def _member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Source:
    key = member.filename.removesuffix(".npy")
    with decoding(path, key, kind="npz"), archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = reader(stream, max_header_size=_MOST_HEADER)
        if dtype.hasobject:
            # Its content would be a pickle; the name is kept for error messages.
            return np.empty((), object)
        if size_in_bytes(shape, dtype) > member.file_size:
            raise mismatch(path, key, f"{shape} numbers of type {dtype}", f"{member.file_size} bytes")
    with decoding(path, key, kind="npz"), archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read()  # to the end, where the checksum is compared
        return np.asarray(array)
