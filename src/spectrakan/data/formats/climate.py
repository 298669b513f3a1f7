"""Archives of daily temperature and pressure, known by their names: `data.climate` reads them.

| arrays | meaning |
|---|---|
| `temperature`, `pressure` (or `tas`, `ps`; `t850`, `mslp`), `lat`, `lon` | days on a latitude-longitude grid |
| `U_train`, `S_train` of 72 x 72 points | `weather_dataset.npz` of Kissas et al. (2022) |
"""

from __future__ import annotations

from spectrakan.data.climate_npz import LOCA_PAIR, LOCA_SIZE, PAIRS, read_climate_npz
from spectrakan.data.container import Container
from spectrakan.fields import Trajectories


def recognises(container: Container) -> bool:
    """Whether an npz file has the names of a known pair and its axes."""
    if container.kind != "npz":
        return False
    gridded = all(name in container for name in ("lat", "lon"))
    if gridded and any(all(name in container for name in pair) for pair in PAIRS):
        return True
    pair = all(name in container for name in LOCA_PAIR)
    return pair and LOCA_SIZE in container.arrays[LOCA_PAIR[0]].shape


def read(container: Container) -> Trajectories:
    """Days as samples of the steady task, temperature to pressure."""
    return read_climate_npz(container.path).trajectories()
