"""The fields of a climate set without the axes that samples of a steady problem have, and its dates."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from spectrakan.data.climate import ClimatePath, read_climate


def days_in(path: ClimatePath | list[Path] = None) -> SimpleNamespace:
    """`temperature` and `pressure` `(days, lat, lon)`, `latitude`, `longitude`, `dates`, `day` and `grid`."""
    data, dates = read_climate(path)
    assert data.inputs is not None
    assert data.steady
    latitude, longitude = (axis.numpy() for axis in data.grid.coordinates)
    return SimpleNamespace(
        temperature=np.asarray(data.inputs)[:, 0, :, :, 0],
        pressure=np.asarray(data.values)[:, 0, :, :, 0],
        latitude=latitude,
        longitude=longitude,
        dates=dates,
        day=(dates - np.datetime64("2000-01-01")).astype(int),
        grid=data.grid,
    )
