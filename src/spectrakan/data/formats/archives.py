"""npz and `.pt` files, which are zip archives, as containers: members are read whole, and nothing in them runs."""

import mmap
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectrakan.data.container import Container, size_in_bytes
from spectrakan.data.decoding import decoding, mismatch, require_size, walk
from spectrakan.fields import Source

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
"""How a zip file begins: with its first member, or with its end if it is empty."""


def open_archive(path: Path) -> Container:
    """A zip file: torch's, whose members lie in a folder with `data.pkl`, or NumPy's."""
    with decoding(path, kind="npz or .pt"), zipfile.ZipFile(path) as archive:
        saved_by_torch = any(name.endswith("/data.pkl") for name in archive.namelist())
        methods = {zipfile.ZIP_STORED} if saved_by_torch else {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
        members = archive.infolist()
        if foreign := [member.filename for member in members if member.compress_type not in methods]:
            raise mismatch(path, foreign[0], "the compression that its writers use", "another")
        require_size(path, "", sum(member.file_size for member in members), path.stat().st_size)
        if not saved_by_torch:
            return Container(path, "npz", npz_arrays(path, archive))
        # Torch does not compare checksums.
        if (damaged := archive.testzip()) is not None:
            raise mismatch(path, damaged, "bytes that fit their checksum", "others")
    return open_torch(path)


def npz_arrays(path: Path, archive: zipfile.ZipFile) -> dict[str, Source]:
    """The members of an npz file, by name without `.npy`; reading them compares their CRC-32."""
    arrays: dict[str, Source] = {}
    for member in archive.infolist():
        # Opening compares the two copies of a name in the archive, so that a damaged name hides no array.
        archive.open(member).close()
        key = member.filename.removesuffix(".npy")
        if key == member.filename:
            continue
        if key in arrays:
            raise mismatch(path, key, "one array of a name", "two")
        with decoding(path, key, kind="npz"):
            arrays[key] = _member(path, key, archive, member)
    return arrays


def _member(path: Path, key: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Source:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = reader(stream)
    if dtype.hasobject:
        # Its content would be a pickle; the name is kept for error messages.
        return np.empty((), object)
    if size_in_bytes(shape, dtype) > member.file_size:
        raise mismatch(path, key, f"{shape} numbers of type {dtype}", f"{member.file_size} bytes")
    with archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read()  # to the end, where the checksum is compared
        return np.asarray(array)


def open_torch(path: Path) -> Container:
    """The tensors of a saved dictionary (nested ones as `group/name`); they are held in memory.

    A file that would run code when loaded is refused by torch's restricted unpickler. Lists of texts beside the
    tensors (names of fields or parameters) become arrays of text, single texts and numbers attributes.
    """
    arrays: dict[str, Source] = {}
    attributes: dict[str, Any] = {}
    total, size = 0, path.stat().st_size
    with decoding(path, kind=".pt dictionary of tensors"):
        # It is the one thing that the restricted unpickler makes at any size, and no tensor needs it.
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(b"bytearray") >= 0:
                raise mismatch(path, "", "tensors", "a byte array")
        saved: Any = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(saved, Mapping | Tensor):
            raise mismatch(path, "", "a dictionary of tensors", type(saved).__name__)
        named = {"values": saved} if isinstance(saved, Tensor) else saved
        for key, value in walk(path, named, _entries, "dictionaries"):
            if isinstance(value, Tensor):
                # A view can repeat one stored number without end.
                total += value.numel() * value.element_size()
                require_size(path, key, total, size)
                with decoding(path, key, kind="tensor"):
                    arrays[key] = value.detach().resolve_conj().resolve_neg().numpy()
            elif isinstance(value, list | tuple) and value and all(isinstance(part, str) for part in value):
                arrays[key] = np.array(value)
            elif isinstance(value, str | int | float):
                attributes[key] = value
    return Container(path, ".pt", arrays, {"": attributes})


def _entries(value: Any) -> Iterable[tuple[str, Any]]:
    return [(str(name), part) for name, part in value.items()] if isinstance(value, Mapping) else ()
