"""The climate problem: surface pressure from the temperature of the same day, on the globe.

Days come with the package, or lie in an npz file that `tools/make_climate.py` writes: `temperature` in K and
`pressure` in hPa `(day, lat, lon)` with their `lat` and `lon`, in order of time. Integers are packed values with a
`_scale` and an `_offset` beside them. Other files are read by a mapping, as those of any problem.
"""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spectrakan.data.container import Container, read_whole, released
from spectrakan.data.decoding import decoding, mismatch
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats import native, open_container
from spectrakan.data.formats.mapping import REMEDY, DataMapping, MappedArray, increasing
from spectrakan.fields import Trajectories
from spectrakan.fields.grid import globe_boundary

SHIPPED = "climate_daily.npz"
"""730 simulated days on 32 x 64 points, part of the package; made by `tools/make_climate.py`."""
UNITS = {"temperature": "K", "pressure": "hPa"}
HIGHEST = 1100.0
"""No mean pressure on Earth reaches this in hPa; in Pa every one does."""


def load_climate(path: Path | str | None = None) -> Trajectories:
    """Days as samples of the steady problem T(x) -> p(x), in order of time.

    `inputs` `(days, 1, lat, lon, 1)` temperature in K, `values` `(days, 1, lat, lon, 1)` pressure in hPa,
    float32, latitude from south to north, cell volumes by area. `path` is None for the days that come with the
    package, else an npz file of the same arrays, or a set that `write_dataset` wrote.

    >>> days = load_climate()
    >>> days.values.shape, days.input_fields[0].name, days.fields[0].unit
    ((730, 1, 32, 64, 1), 'temperature', 'hPa')
    """
    if path is None:
        with resources.as_file(resources.files("spectrakan.data") / SHIPPED) as shipped:
            return load_climate(shipped)
    path = Path(path).absolute()
    with released(path), decoding(path, kind="climate file"):
        container = open_container(path)
        return native.read(container) or _read_days(container)


def _read_days(container: Container) -> Trajectories:
    if not {*UNITS, "lat", "lon"} <= container.arrays.keys():
        raise mismatch(container.path, "", "temperature, pressure, lat and lon", container.describe(), REMEDY)
    unpacked = {name: _unpacked(container, name) for name in UNITS}
    if (median := float(np.nanmedian(unpacked["pressure"]))) > HIGHEST:
        raise mismatch(container.path, "pressure", "numbers in hPa", f"a median of {median:g}", "convert them")
    warm, heavy = (
        MappedArray(array=name, axes=("sample", "x", "y"), fields=(name,), units=(unit,), positive=(name,))
        for name, unit in UNITS.items()
    )
    around = globe_boundary(("lat", "lon"), increasing(container.vector("lon"))[0])
    mapping = DataMapping(
        inputs=(warm,),
        values=(heavy,),
        coordinates={"x": "lat", "y": "lon"},
        boundary=around or ("outflow", "outflow"),
        latitude="x",
        name="climate2d",
    )
    return mapped.read(replace(container, arrays={**container.arrays, **unpacked}), mapping).with_arrays(np.asarray)


def _unpacked(container: Container, name: str) -> npt.NDArray[np.float32]:
    """The numbers of an array; of integers offset + scale * integer, as in netCDF."""
    stored = read_whole(container.array(name))
    if stored.dtype.kind == "i":
        scale, offset = (float(container.vector(f"{name}_{part}")[0]) for part in ("scale", "offset"))
        stored = stored * scale + offset
    return np.asarray(stored, dtype=np.float32)
