"""What a data file holds, whatever its kind: named arrays and attributes, before any of it has a meaning.

A file's kind (HDF5, npz, netCDF, Zarr, .pt, .mat) says how bytes become arrays; its layout (native, PDEBench,
named axes, ...) says what the arrays mean. Containers stand between the two, so that every layout can be read
from every kind of file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.decoding import mismatch
from spectrakan.data.source import Source, read_whole, size_in_bytes
from spectrakan.errors import DataFormatError, nearest

SMALL_BYTES = 2**26
"""Most that a coordinate, a list of times or a table of parameters may take (64 MiB)."""

NUMBERS = "fiub"
"""Kinds of NumPy types that fields are made of: real numbers of any width, and truth values."""


@dataclass(frozen=True, eq=False)
class Container:
    """An opened file: arrays by name (`group/name` inside groups), attributes by object (`""` is the root).

    `dims` names the axes of those arrays whose format names them; `faults` says of damaged arrays what was
    found in them, which matters only if they are asked for.
    """

    path: Path
    kind: str
    arrays: Mapping[str, Source]
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        return key in self.arrays

    def attribute(self, name: str, of: str = "") -> Any:
        """An attribute of the root or of a named object; None where it is absent."""
        return self.attributes.get(of, {}).get(name)

    def array(self, key: str) -> Source:
        """An array of real numbers; an error names the nearest that exists."""
        if key not in self.arrays:
            raise DataFormatError(f"'{self.path}' has no array '{key}'{nearest(key, self._first_names())}")
        if key in self.faults:
            raise mismatch(self.path, key, "an array that was written whole", self.faults[key])
        source = self.arrays[key]
        if source.dtype.kind not in NUMBERS:
            raise mismatch(self.path, key, "an array of real numbers", f"type {source.dtype}")
        if 0 in source.shape:
            raise mismatch(self.path, key, "at least one number", f"an empty array of shape {source.shape}")
        return source

    def ranked(self, key: str, axes: tuple[str, ...]) -> Source:
        """An array with as many axes as are named."""
        source = self.array(key)
        if len(source.shape) != len(axes):
            raise mismatch(self.path, key, f"{len(axes)} axes ({', '.join(axes)})", f"shape {source.shape}")
        return source

    def vector(self, key: str) -> npt.NDArray[np.float64]:
        """A one-dimensional array of finite numbers, read whole; axes of size one are dropped."""
        source = self.array(key)
        long = [size for size in source.shape if size != 1]
        if len(long) > 1 or size_in_bytes(source.shape, source.dtype) > SMALL_BYTES:
            raise mismatch(self.path, key, "a short list of numbers", f"shape {source.shape}")
        numbers = read_whole(source).astype(np.float64).reshape(-1)
        if not np.isfinite(numbers).all():
            place = int(np.flatnonzero(~np.isfinite(numbers))[0])
            raise mismatch(self.path, key, "finite numbers", f"{numbers[place]} at index {place}")
        return numbers

    def describe(self) -> str:
        """Names and shapes of the first arrays, for error messages."""
        listed = [f"{name} {source.shape}" for name, source in list(self.arrays.items())[:12]]
        more = len(self.arrays) - len(listed)
        return (", ".join(listed) or "no arrays") + (f" and {more} more" if more else "")

    def _first_names(self) -> list[str]:
        return list(self.arrays)[:40]
