"""HDF5 files as containers: arrays stay in the file and are read by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, mismatch
from spectrakan.data.handles import opened
from spectrakan.data.source import Block, Source, Stamp

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MOST_OBJECTS = 200_000
"""A file with more groups and arrays is refused; a thousand samples in groups take five thousand."""


@dataclass(frozen=True)
class HDF5Source:
    """A dataset of an HDF5 file; `reverse` turns its axes round (MATLAB stores the first axis fastest)."""

    path: Path
    key: str
    stored_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stamp: Stamp
    reverse: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.stored_shape[::-1] if self.reverse else self.stored_shape

    def read(self, block: Block) -> npt.NDArray[Any]:
        """A block, by a selection inside the file."""
        with decoding(self.path, self.key, kind="HDF5"):
            dataset = opened(self.path, self.stamp, _open_file)[self.key]
            if dataset.shape != self.stored_shape:
                raise mismatch(self.path, self.key, f"shape {self.stored_shape}", f"{dataset.shape}")
            if self.reverse:
                return np.asarray(dataset[block[::-1]]).T
            return np.asarray(dataset[block])


def is_hdf5(path: Path) -> bool:
    """Whether the signature stands where HDF5 looks for it: at 0, or at 512, 1024, 2048, ... ."""
    size = path.stat().st_size
    with path.open("rb") as file:
        offset = 0
        while offset + len(SIGNATURE) <= size and offset <= 2**20:
            file.seek(offset)
            if file.read(len(SIGNATURE)) == SIGNATURE:
                return True
            offset = max(512, 2 * offset)
    return False


def open_hdf5(path: Path, *, reverse: bool = False) -> Container:
    """List the arrays and attributes of an HDF5 file; no field is read."""
    stamp = Stamp.of(path)
    arrays: dict[str, Source] = {}
    attributes: dict[str, dict[str, Any]] = {}
    faults: dict[str, str] = {}
    with decoding(path, kind="HDF5"):
        file = opened(path, stamp, _open_file)
        attributes[""] = _attributes(file)
        for name, item in _walk(file):
            if len(attributes) > MOST_OBJECTS:
                raise mismatch(path, name, f"at most {MOST_OBJECTS} objects", "more")
            attributes[name] = _attributes(item)
            if isinstance(item, h5py.Dataset) and item.shape is not None:
                if fault := _unwritten(item):
                    faults[name] = fault
                arrays[name] = HDF5Source(path, name, tuple(item.shape), item.dtype, stamp, reverse)
    return Container(path, "HDF5", arrays, attributes, faults=faults)


def _open_file(path: Path) -> h5py.File:
    return h5py.File(path, "r")


def _walk(file: h5py.File) -> list[tuple[str, Any]]:
    """Every object once, by its first name; soft and external links are not followed."""
    found: list[tuple[str, Any]] = []

    def keep(name: str, item: Any) -> bool | None:
        found.append((name, item))
        return True if len(found) > MOST_OBJECTS else None

    file.visititems(keep)
    return found


def _attributes(item: Any) -> dict[str, Any]:
    """Attributes as plain text and numbers.

    What has variable length (some texts, references) is listed without its content: it lies in a heap that has
    no checksum and can send the library round in circles, and nothing here needs it.
    """
    result: dict[str, Any] = {}
    for name in item.attrs:
        variable = item.attrs.get_id(name).dtype.kind == "O"
        value = "" if variable else item.attrs[name]
        result[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return result


def _unwritten(dataset: h5py.Dataset) -> str:
    """What is missing of a dataset that was reserved and not written, which HDF5 reads as zeros silently."""
    if not dataset.size or dataset.is_virtual or dataset.external:
        return ""
    if dataset.chunks is None:
        return "" if dataset.id.get_storage_size() else "space that was never written"
    expected = math.prod(-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True))
    written = dataset.id.get_num_chunks()
    return "" if written >= expected else f"{written} of {expected} chunks: its writer did not finish"
