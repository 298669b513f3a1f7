"""Days of temperature and surface pressure on one grid, in one order and one set of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.data.axes import globe_grid
from spectrakan.errors import DataFormatError
from spectrakan.fields import FieldSpec, Grid, Trajectories

EPOCH = np.datetime64("2000-01-01", "D")
"""Day 0."""

UNITS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("k", "degk", "kelvin", "hpa", "mb", "mbar", "millibar", "millibars"), (1.0, 0.0)),
    **dict.fromkeys(("c", "degc", "celsius", "degrees_celsius"), (1.0, 273.15)),
    **dict.fromkeys(("pa", "pascal", "pascals"), (0.01, 0.0)),
    "kpa": (10.0, 0.0),
}
"""Factor and summand that give K or hPa, by a unit's name in lower case."""

GUESSES: dict[str, tuple[tuple[float, float, str], ...]] = {
    "temperature": ((150.0, 350.0, "K"), (-100.0, 60.0, "degC")),
    "pressure": ((30_000.0, 110_000.0, "Pa"), (300.0, 1_100.0, "hPa"), (30.0, 110.0, "kPa")),
}
"""Range of the median of a field on Earth, by unit; the ranges do not overlap."""


@dataclass(frozen=True, eq=False)
class ClimateDays:
    """Pairs of fields of the same day, in order of time.

    `temperature` `(days, lat, lon)` in K and `pressure` in hPa, float32; `latitude` south to north and
    `longitude` increasing, in degrees; `day` whole days since 2000-01-01, increasing; `source` names
    the files, for error messages.
    """

    temperature: npt.NDArray[np.float32]
    pressure: npt.NDArray[np.float32]
    latitude: npt.NDArray[np.float64]
    longitude: npt.NDArray[np.float64]
    day: npt.NDArray[np.int64]
    source: str

    def __post_init__(self) -> None:
        shape = (len(self.day), len(self.latitude), len(self.longitude))
        for name, values in (("temperature", self.temperature), ("pressure", self.pressure)):
            if values.shape != shape:
                raise DataFormatError(f"{self.source}: {name} must be (days, lat, lon) = {shape}, got {values.shape}")
        if not shape[0] or min(shape[1:]) < 2:
            raise DataFormatError(f"{self.source}: expected days on at least 2 x 2 points, got {shape}")
        if bool((np.diff(self.day) <= 0).any()):
            raise DataFormatError(f"{self.source}: days must increase; a day occurs twice or too late")
        for name, points, limit in (("latitude", self.latitude, 90.0), ("longitude", self.longitude, 360.0)):
            if not np.isfinite(points).all() or np.abs(points).max() > limit or bool((np.diff(points) <= 0).any()):
                found = f"{points[:3]} .. {points[-2:]}"
                raise DataFormatError(
                    f"{self.source}: {name} must be different degrees within ±{limit:g}, got {found}"
                )
        self._check_values("temperature", self.temperature, GUESSES["temperature"][0])
        self._check_values("pressure", self.pressure, GUESSES["pressure"][1])

    def _check_values(self, name: str, values: npt.NDArray[np.float32], customary: tuple[float, float, str]) -> None:
        missing = ~np.isfinite(values)
        if missing.any():
            day, *point = np.argwhere(missing)[0].tolist()
            raise DataFormatError(
                f"{self.source}: {name} has {int(missing.sum())} missing or infinite values, the first on day "
                f"{self.day[day]} ({self.dates[day]}) at point {tuple(point)}; drop these days"
            )
        low, high, unit = customary
        if not low <= (median := float(np.median(values))) <= high:
            raise DataFormatError(
                f"{self.source}: {name} should lie around {low:g} to {high:g} {unit}, its median is {median:g}; "
                "are the two variables swapped?"
            )

    @property
    def grid(self) -> Grid:
        """The points with their shares of the area."""
        return globe_grid(self.latitude, self.longitude)

    @property
    def dates(self) -> npt.NDArray[Any]:
        """The days as `datetime64[D]`; simulated ones are dates of the model's calendar."""
        return np.asarray(EPOCH + self.day.astype("timedelta64[D]"))

    def trajectories(self) -> Trajectories:
        """Temperature as input and pressure as output of a steady problem; a day is a sample, in time order."""
        return Trajectories(
            values=self.pressure[:, None, :, :, None],
            grid=self.grid,
            times=np.zeros(1),
            fields=(FieldSpec("pressure", unit="hPa", positive=True),),
            inputs=self.temperature[:, None, :, :, None],
            input_fields=(FieldSpec("temperature", unit="K", positive=True),),
            name="climate2d",
        )


def to_standard_unit(name: str, values: npt.NDArray[Any], unit: str, source: str) -> npt.NDArray[np.float32]:
    """K or hPa, float32; an unknown unit is inferred from the median of the numbers.

    >>> to_standard_unit("pressure", np.array([101325.0]), "Pascals", "a file").tolist()
    [1013.25]
    """
    if unit.lower() not in UNITS:
        unit = _guess_unit(name, values, unit, source)
    factor, summand = UNITS[unit.lower()]
    # Numbers too large for float32 become infinite, and are refused later with their index.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values * factor + summand, dtype=np.float32)


def orient(
    values: npt.NDArray[np.float32], latitude: npt.NDArray[np.float64], longitude: npt.NDArray[np.float64]
) -> npt.NDArray[np.float32]:
    """`(days, lat, lon)` put south to north and eastward, given its axes as stored."""
    for axis, points in ((1, latitude), (2, longitude)):
        order = np.argsort(points)
        if bool((np.diff(order) != 1).any()):
            values = np.take(values, order, axis=axis)
    return values


def day_numbers(times: npt.NDArray[Any], source: str) -> npt.NDArray[np.int64]:
    """Whole days since 2000-01-01 from dates, from texts such as '1991-01-31', or from such numbers."""
    if times.ndim != 1:
        raise DataFormatError(f"{source}: expected one day for each field, got an array {times.shape}")
    if np.issubdtype(times.dtype, np.integer):
        return times.astype(np.int64)
    try:
        return (times.astype("datetime64[D]") - EPOCH).astype(np.int64)
    except (TypeError, ValueError):
        example = times.ravel()[:1].tolist()
        raise DataFormatError(
            f"{source}: expected dates of the standard calendar or whole days since {EPOCH}, got "
            f"{times.dtype} such as {example}"
        ) from None


def _guess_unit(name: str, values: npt.NDArray[Any], stated: str, source: str) -> str:
    finite = values[np.isfinite(values)]
    middle = float(np.median(finite)) if finite.size else float("nan")
    for low, high, unit in GUESSES[name]:
        if low <= middle <= high:
            return unit
    known = ", ".join(f"{unit} ({low:g} to {high:g})" for low, high, unit in GUESSES[name])
    raise DataFormatError(
        f"{source}: {name} in unknown unit {stated!r} has the median {middle:g}, which fits none of {known}; "
        "name the right variable, or convert it"
    )
