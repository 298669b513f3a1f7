"""Fields as 16-bit integers, value = offset + scale * integer, as netCDF files pack theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.errors import DataFormatError

LARGEST = np.iinfo(np.int16).max
"""Integers run from -32767 to 32767; -32768 stays free, as the usual mark of a missing value."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Integers with the step between two of them and the value of zero."""

    integers: npt.NDArray[np.int16]
    scale: float
    offset: float

    def unpack(self) -> npt.NDArray[np.float32]:
        """The values, off by at most half a step."""
        return (self.integers * np.float64(self.scale) + self.offset).astype(np.float32)

    def arrays(self, name: str) -> dict[str, npt.NDArray[Any]]:
        """The three arrays that stand for the field `name` in an npz file."""
        return {
            name: self.integers,
            f"{name}_scale": np.array(self.scale),
            f"{name}_offset": np.array(self.offset),
        }

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Packed:
        """What `arrays` wrote."""
        integers = arrays[name]
        try:
            scale, offset = (float(arrays[f"{name}_{part}"]) for part in ("scale", "offset"))
        except (KeyError, TypeError, ValueError):
            raise DataFormatError(
                f"'{name}' is stored as integers, so the numbers '{name}_scale' and '{name}_offset' must "
                "stand beside it; write it anew, or store it as floating point"
            ) from None
        if integers.dtype != np.int16 or not np.isfinite([scale, offset]).all() or scale <= 0:
            raise DataFormatError(
                f"'{name}' must be int16 with a positive scale and a finite offset, got {integers.dtype}, "
                f"{scale} and {offset}"
            )
        return cls(integers, scale, offset)


def pack(values: npt.NDArray[np.floating[Any]], quantum: float) -> Packed:
    """Round to multiples of `quantum` around the middle of the range; a range that is too wide is refused.

    >>> pack(np.array([990.0, 1010.0]), quantum=0.02).integers.tolist()
    [-500, 500]
    """
    if not values.size or not np.isfinite(values).all():
        raise DataFormatError("only finite values can be packed, and at least one; fill or drop the others")
    low, high = float(values.min()), float(values.max())
    offset = round((low + high) / 2 / quantum) * quantum
    integers = np.rint((values.astype(np.float64) - offset) / quantum)
    if np.abs(integers).max() > LARGEST:
        raise DataFormatError(
            f"values from {low:g} to {high:g} need a step of at least {(high - low) / (2 * LARGEST):.3g} "
            f"to fit 16 bits, got {quantum:g}"
        )
    return Packed(integers.astype(np.int16), quantum, offset)
