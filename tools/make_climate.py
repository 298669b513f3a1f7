"""Make the climate set: daily near-surface temperature and surface pressure of a simulated globe.

A general circulation model (`jcm`, SPEEDY physics on the `dinosaur` spectral core, both Apache-2.0) runs
offline on one CPU core, about 0.3 s a day:

    pip install 'spectrakan[gcm]'
    python tools/make_climate.py simulate climate_full.npz --days 2100
    python tools/make_climate.py pack climate_full.npz src/spectrakan/data/climate_daily.npz --days 730
    python tools/make_climate.py compare climate_full.npz other.npz

Weather is chaotic: another machine gives other days with the same statistics, which `compare` puts side by
side. `docs/climate.md` says what the set is good for.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TRUNCATION = 21
"""Triangular spectral truncation: 64 x 32 Gaussian points."""
LAYERS = 8
STEP_MINUTES = 40.0
SAVES_PER_DAY = 4
"""States at 06, 12, 18 and 24 UTC; their mean is the value of the day."""
SMOOTHING = 3.0
"""Damps the orography by exp(-3 (l(l+1) / N(N+1))^2): bare truncation rings around the Andes."""
MEAN_PRESSURE_PA = 98500.0
"""Area mean of the initial surface pressure; the core then keeps the mean of its logarithm."""
CHUNK_DAYS = 10
QUANTUM = 0.05
"""Step of the packed integers, in K and in hPa; the reanalysis files of NCEP keep 0.1."""


@dataclass(frozen=True)
class Globe:
    """A model ready to run, with what it stands on."""

    model: Any
    forcing: Any
    orography: np.ndarray
    land_fraction: np.ndarray


def build_globe() -> Globe:
    """The model at T21 with smoothed mountains and the climatological boundary data of its wheel."""
    from importlib import resources

    from jcm.forcing import ForcingData
    from jcm.model import Model
    from jcm.physics.speedy.speedy_coords import get_speedy_coords
    from jcm.terrain import TerrainData, get_terrain

    coords = get_speedy_coords(layers=LAYERS, spectral_truncation=TRUNCATION)
    boundary = resources.files("jcm") / "data" / "bc" / "t30" / "clim"
    rough, land = get_terrain(terrain_file=str(boundary / "terrain.nc"), grid=coords.horizontal)
    smooth = smooth_orography(coords.horizontal, rough)
    terrain = TerrainData.from_coords(coords, orography=smooth, fmask=land)
    model = Model(coords=coords, terrain=terrain, time_step=STEP_MINUTES, start_time="2000-01-01")
    forcing = ForcingData.from_file(str(boundary / "forcing.nc"), coords=coords, align_mode="wrap_year")
    return Globe(model, forcing, np.asarray(smooth).T, np.asarray(land).T)


def smooth_orography(grid: Any, heights: Any) -> Any:
    """Heights with the spherical harmonic of degree l damped by exp(-3 (l(l+1) / N(N+1))^2)."""
    degree = np.asarray(grid.modal_axes[1], dtype=np.float64)
    ratio = degree * (degree + 1) / (TRUNCATION * (TRUNCATION + 1))
    factor = np.exp(-SMOOTHING * ratio**2).astype(np.float32)
    return grid.to_nodal(grid.to_modal(heights) * factor)


def initial_state(model: Any, seed: int) -> Any:
    """Isothermal air at rest with a small random dent in its pressure, scaled to the wanted mass."""
    state = model.initial_state(random_seed=seed)
    grid = model.coords.horizontal
    logarithm = np.asarray(grid.to_nodal(state.log_surface_pressure), dtype=np.float64)
    pressure = model.dycore.constants.p0 * np.exp(logarithm)
    mean = float((pressure.mean(axis=-2) * gaussian_weights(pressure.shape[-1])).sum())
    scaled = logarithm + np.log(MEAN_PRESSURE_PA / mean)
    return state.replace(log_surface_pressure=grid.to_modal(scaled.astype(np.float32)))


def gaussian_weights(size: int) -> np.ndarray:
    """Share of the sphere's area that each Gaussian latitude stands for."""
    return np.polynomial.legendre.leggauss(size)[1] / 2


def simulate(days: int, spin_up: int, seed: int) -> dict[str, np.ndarray]:
    """Daily means after the spin-up: temperature (K) and pressure (Pa), `(days, lat, lon)` float32."""
    globe = build_globe()
    model, pascal = globe.model, globe.model.dycore.constants.p0
    model.bootstrap_state(initial_state(model, seed))
    temperature: list[np.ndarray] = []
    pressure: list[np.ndarray] = []
    start = time.perf_counter()
    while len(pressure) * CHUNK_DAYS < spin_up + days:
        states = model.resume(forcing=globe.forcing, save_interval=1.0 / SAVES_PER_DAY, total_time=float(CHUNK_DAYS))
        temperature.append(daily_mean(states.physics["_surface_flux"].t0))
        pressure.append(daily_mean(states.dynamics.normalized_surface_pressure) * pascal)
        if not np.isfinite(pressure[-1]).all():
            raise SystemExit(f"the model blew up before day {len(pressure) * CHUNK_DAYS}; try another --seed")
        if len(pressure) % 10 == 0:
            print(f"day {len(pressure) * CHUNK_DAYS}: {time.perf_counter() - start:.0f} s", flush=True)
    kept = slice(spin_up, spin_up + days)
    grid = model.coords.horizontal
    return {
        "temperature": np.concatenate(temperature)[kept].astype(np.float32),
        "pressure": np.concatenate(pressure)[kept].astype(np.float32),
        "lat": np.degrees(np.asarray(grid.latitudes)).astype(np.float32),
        "lon": np.degrees(np.asarray(grid.longitudes)).astype(np.float32),
        "day": np.arange(spin_up, spin_up + days, dtype=np.int32),
        "orography": globe.orography.astype(np.float32),
        "land_fraction": globe.land_fraction.astype(np.float32),
        "source": np.array(describe_source(seed)),
    }


def daily_mean(states: Any) -> np.ndarray:
    """`(saves, lon, lat)` -> `(days, lat, lon)`, summed in float64."""
    values = np.asarray(states, dtype=np.float64).swapaxes(1, 2)
    return values.reshape(-1, SAVES_PER_DAY, *values.shape[1:]).mean(axis=1)


def describe_source(seed: int) -> str:
    """What made the set, for the file itself."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jcm", "dinosaur", "jax"))
    return (
        f"simulated by {versions} with tools/make_climate.py, seed {seed}: T{TRUNCATION}, {LAYERS} SPEEDY "
        f"layers, {STEP_MINUTES:.0f}-minute step, climatological boundary data"
    )


def summarize(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The statistics in which two runs of the same model should agree."""
    weights = gaussian_weights(len(arrays["lat"]))
    temperature = arrays["temperature"].astype(np.float64)
    pressure = arrays["pressure"].astype(np.float64) / 100
    return {
        "days": len(pressure),
        "temperature range (K)": (temperature.min(), temperature.max()),
        "pressure range (hPa)": (pressure.min(), pressure.max()),
        "area mean temperature (K)": float((temperature.mean(axis=(0, 2)) * weights).sum()),
        "area mean pressure (hPa)": float((pressure.mean(axis=(0, 2)) * weights).sum()),
        "geometric area mean pressure (hPa)": float(np.exp((np.log(pressure).mean(axis=(0, 2)) * weights).sum())),
        "day-to-day std of temperature (K)": area_rms(temperature.std(axis=0), weights),
        "day-to-day std of pressure (hPa)": area_rms(pressure.std(axis=0), weights),
        "zonal temperature": temperature.mean(axis=(0, 2)),
        "zonal pressure": pressure.mean(axis=(0, 2)),
        "orography": arrays["orography"],
    }


def area_rms(field: np.ndarray, weights: np.ndarray) -> float:
    """Root of the area mean of the square of `(lat, lon)`."""
    return float(np.sqrt(((field**2).mean(axis=1) * weights).sum()))


def compare(first: Path, second: Path) -> None:
    """Print the statistics of two sets side by side, cut to whole years so that seasons weigh the same."""
    sets = [whole_years(read(path)) for path in (first, second)]
    one, two = (summarize(arrays) for arrays in sets)
    print(f"{'':38}{first.name:>22}{second.name:>22}")
    for name in one:
        if isinstance(one[name], np.ndarray):
            print(f"{name + ', largest difference':38}{np.abs(one[name] - two[name]).max():>22.4g}")
        else:
            print(f"{name:38}{form(one[name]):>22}{form(two[name]):>22}")


def form(value: Any) -> str:
    """A number or a range as text."""
    return " .. ".join(f"{item:.2f}" for item in value) if isinstance(value, tuple) else f"{value:.6g}"


def whole_years(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The first n years of a set, so that no season counts twice."""
    days = len(arrays["day"]) // 365 * 365 or len(arrays["day"])
    return arrays | {name: arrays[name][:days] for name in ("temperature", "pressure", "day")}


def pack_subset(source: Path, target: Path, days: int) -> None:
    """Write the first `days` days as 16-bit integers; what the package ships."""
    arrays = read(source)
    if len(arrays["day"]) < days:
        raise SystemExit(f"{source} holds {len(arrays['day'])} days, {days} are asked for")
    temperature = pack("temperature", arrays["temperature"][:days], QUANTUM)
    packed = temperature | pack("pressure", arrays["pressure"][:days] / 100.0, QUANTUM)
    plain = {name: arrays[name] for name in ("lat", "lon", "orography", "land_fraction")}
    origin = str(arrays.get("source", f"days of {source.name}, made by the recipe of tools/make_climate.py"))
    np.savez_compressed(
        target,
        allow_pickle=False,
        **packed,
        **plain,
        day=arrays["day"][:days],
        source=np.array(f"{origin}; first {days} days, packed to {QUANTUM} K and {QUANTUM} hPa"),
    )
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB, {days} days")


def pack(name: str, values: np.ndarray, quantum: float) -> dict[str, np.ndarray]:
    """The field `name` as 16-bit integers, value = offset + scale * integer, rounded to multiples of `quantum`.

    Integers run from -32767 to 32767 around the middle of the range; -32768 is the usual mark of a missing value.
    """
    if not values.size or not np.isfinite(values).all():
        raise SystemExit(f"{name}: only finite values can be packed, and at least one")
    low, high = float(values.min()), float(values.max())
    offset = round((low + high) / 2 / quantum) * quantum
    integers = np.rint((values.astype(np.float64) - offset) / quantum)
    if np.abs(integers).max() > 32767:
        needed = (high - low) / 65534
        raise SystemExit(f"{name} from {low:g} to {high:g} needs a step of at least {needed:.3g}, got {quantum:g}")
    return {name: integers.astype(np.int16), f"{name}_scale": np.array(quantum), f"{name}_offset": np.array(offset)}


def read(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an npz file."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def main() -> None:
    """Parse the command and run it."""
    parser = argparse.ArgumentParser(description="Make, pack or compare the simulated climate set.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("simulate", help="run the model and write daily means")
    run.add_argument("target", type=Path)
    run.add_argument("--days", type=int, default=2100)
    run.add_argument("--spin-up", type=int, default=60, help="first days, dropped")
    run.add_argument("--seed", type=int, default=0, help="of the dent in the initial pressure")
    packing = commands.add_parser("pack", help="write the first days as 16-bit integers")
    packing.add_argument("source", type=Path)
    packing.add_argument("target", type=Path)
    packing.add_argument("--days", type=int, default=730)
    comparing = commands.add_parser("compare", help="statistics of two sets side by side")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    chosen = parser.parse_args()
    if chosen.command == "simulate":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        np.savez_compressed(chosen.target, allow_pickle=False, **simulate(chosen.days, chosen.spin_up, chosen.seed))
    elif chosen.command == "pack":
        pack_subset(chosen.source, chosen.target, chosen.days)
    else:
        compare(chosen.first, chosen.second)


if __name__ == "__main__":
    main()
