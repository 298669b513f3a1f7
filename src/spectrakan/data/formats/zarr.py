"""Zarr folders (versions 2 and 3) as containers.

Arrays that name their axes go through xarray, others through zarr itself. A store that asks for pickled
objects is refused before any of it is decoded. Absent chunks read as the fill value, as Zarr defines it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, mismatch, missing_package
from spectrakan.data.formats.labelled import open_labelled
from spectrakan.data.handles import opened
from spectrakan.data.source import Block, Source, Stamp

METADATA = (".zgroup", ".zarray", "zarr.json")


@dataclass(frozen=True)
class _Store:
    """An opened group; it has nothing to close."""

    group: Any

    def close(self) -> None:
        """Nothing, for a folder of files holds no handle."""


@dataclass(frozen=True)
class ZarrSource:
    """An array of a Zarr group."""

    path: Path
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stamp: Stamp

    def read(self, block: Block) -> npt.NDArray[Any]:
        """A block; only the chunks that it touches are read."""
        with decoding(self.path, self.key, kind="Zarr"):
            return np.asarray(opened(self.path, self.stamp, _open_store).group[self.key][block])


def is_zarr(path: Path) -> bool:
    """Whether a folder has Zarr's metadata at its top."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


def open_zarr(path: Path) -> Container:
    """List the arrays of a Zarr group; no field is read."""
    _refuse_pickles(path)
    arrays: dict[str, Source] = {}
    named: list[bool] = []
    stamp = Stamp.of(path)
    with decoding(path, kind="Zarr"):
        try:
            group = opened(path, stamp, _open_store).group
        except ImportError:
            raise missing_package(path, "zarr", "climate") from None
        attributes = {"": dict(group.attrs)}
        for key, array in _arrays(group):
            arrays[key] = ZarrSource(path, key, tuple(array.shape), np.dtype(array.dtype), stamp)
            attributes[key] = dict(array.attrs)
            named.append(bool(_dimension_names(array)))
    if named and all(named) and not any("/" in key for key in arrays):
        return open_labelled(path, "zarr", "Zarr")
    return Container(path, "Zarr", arrays, attributes)


def _open_store(path: Path) -> _Store:
    import zarr

    # Consolidated metadata are a second copy of what was looked through, and could say something else.
    return _Store(zarr.open_group(str(path), mode="r", use_consolidated=False))


def _arrays(group: Any, prefix: str = "") -> list[tuple[str, Any]]:
    found = [(prefix + name, array) for name, array in sorted(group.arrays())]
    for name, inner in sorted(group.groups()):
        found += _arrays(inner, f"{prefix}{name}/")
    return found


def _dimension_names(array: Any) -> Any:
    return getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")


def _refuse_pickles(path: Path) -> None:
    """Look through the metadata for a codec that runs code; folders of chunks are not entered."""
    for folder, inner, names in os.walk(path):
        for name in sorted(set(names) & set(METADATA)):
            key = str((Path(folder) / name).relative_to(path))
            with decoding(path, key, kind="Zarr metadata"):
                entries = json.loads((Path(folder) / name).read_text())
            if _asks_for_pickle(entries):
                raise mismatch(path, key, "plain numbers", "a pickle codec", "it could run code")
            if name == ".zarray" or (isinstance(entries, dict) and entries.get("node_type") == "array"):
                inner.clear()


def _asks_for_pickle(entries: Any) -> bool:
    if isinstance(entries, list):
        return any(_asks_for_pickle(entry) for entry in entries)
    if not isinstance(entries, dict):
        return False
    named = {str(entries.get(key)).lower().removeprefix("numcodecs.") for key in ("id", "name")}
    rest = (entry for key, entry in entries.items() if key != "attributes")
    return "pickle" in named or any(_asks_for_pickle(entry) for entry in rest)
