"""Zarr folders (versions 2 and 3) as containers.

Arrays that name their axes go through xarray, others through zarr itself. A store that asks for pickled
objects is refused before any of it is decoded. Absent chunks read as the fill value, as Zarr defines it.
"""

from __future__ import annotations

import json
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

    return _Store(zarr.open_group(str(path), mode="r"))


def _arrays(group: Any, prefix: str = "") -> list[tuple[str, Any]]:
    found = [(prefix + name, array) for name, array in sorted(group.arrays())]
    for name, inner in sorted(group.groups()):
        found += _arrays(inner, f"{prefix}{name}/")
    return found


def _dimension_names(array: Any) -> Any:
    return getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")


def _refuse_pickles(path: Path) -> None:
    """Look through the metadata for a codec that runs code."""
    for name in METADATA:
        for file in sorted(path.rglob(name)):
            with decoding(path, str(file.relative_to(path)), kind="Zarr metadata"):
                if "pickle" in json.dumps(json.loads(file.read_text())).lower():
                    found = "a pickle codec"
                    raise mismatch(
                        path, str(file.relative_to(path)), "plain numbers", found, "it could run code"
                    )
