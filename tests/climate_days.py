"""The fields of a climate set without the axes that samples of a steady problem have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from spectrakan.data.climate import load_climate


def days_in(path: Path | None = None) -> SimpleNamespace:
    """`temperature` and `pressure` `(days, lat, lon)`, `latitude`, `longitude` and `grid`."""
    data = load_climate(path)
    assert data.inputs is not None
    assert data.steady
    latitude, longitude = (axis.numpy() for axis in data.grid.coordinates)
    return SimpleNamespace(
        temperature=np.asarray(data.inputs)[:, 0, :, :, 0],
        pressure=np.asarray(data.values)[:, 0, :, :, 0],
        latitude=latitude,
        longitude=longitude,
        grid=data.grid,
    )
