"""Grids and times from stored coordinates, which are rounded, reversed or one too many."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.data.decoding import mismatch
from spectrakan.errors import ConfigError
from spectrakan.fields import Boundary, Grid

Numbers = npt.NDArray[np.float64]

_ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Coordinates are often computed in single precision; this is its rounding after a few operations."""


def grid_around(
    centres: Sequence[Numbers], boundary: Sequence[Boundary] = (), *, latitude: int | None = None
) -> Grid:
    """The grid of stored cell centres.

    Centres are kept as stored. Where they are equally spaced up to single precision, faces and volumes are
    made exactly equal, and the ends of the domain are taken as the round numbers that they nearly are.
    `latitude` names an axis in degrees whose cells have volumes by the sine of latitude.
    """
    plain = Grid.from_centres([torch.from_numpy(axis.copy()) for axis in centres])
    edges = [_exact_faces(axis, faces) for axis, faces in zip(centres, plain.edges, strict=True)]
    weights = [edge.diff() / (edge[-1] - edge[0]) for edge in edges]
    if latitude is not None:
        edges[latitude] = edges[latitude].clamp(-90.0, 90.0)
        area = torch.deg2rad(edges[latitude]).sin().diff()
        weights[latitude] = area / area.sum()
    return Grid(plain.coordinates, tuple(edges), tuple(weights), tuple(boundary))


def globe_grid(latitude: Numbers, longitude: Numbers) -> Grid:
    """Grid of a globe or of a part of it: latitudes south to north, longitudes eastward, in degrees.

    The volume of a cell is its share of the area, ∝ sin(north face) - sin(south face). On all Gaussian
    latitudes the faces are put where these differences are the weights of Gauss-Legendre quadrature, so that
    means are exact for every polynomial in sin(latitude) up to degree 2n - 1; elsewhere they lie half-way.
    Longitudes that close the circle are periodic, a region ends in open sides.

    >>> grid = globe_grid(np.array([-60.0, 0.0, 60.0]), np.array([0.0, 90.0, 180.0, 270.0]))
    >>> [round(float(weight), 4) for weight in grid.weights[0]]
    [0.25, 0.5, 0.25]
    """
    grid = Grid.latitude_longitude(torch.from_numpy(latitude), torch.from_numpy(longitude))
    if not closes_circle(longitude):
        grid = replace(grid, boundary=("outflow", "outflow"))
    nodes, weights = np.polynomial.legendre.leggauss(len(latitude))
    if np.abs(np.degrees(np.arcsin(nodes)) - latitude).max() > 1e-3:
        return grid
    sines = np.concatenate([[-1.0], np.cumsum(weights)[:-1] - 1.0, [1.0]])
    faces = torch.from_numpy(np.degrees(np.arcsin(sines)))
    shares = torch.from_numpy(weights / weights.sum())
    return replace(grid, edges=(faces, grid.edges[1]), weights=(shares, grid.weights[1]))


def closes_circle(longitude: Numbers) -> bool:
    """Whether one step past the last longitude is the first one again."""
    steps = np.diff(longitude)
    gap = 360.0 - (longitude[-1] - longitude[0])
    return bool(abs(gap - steps.mean()) < 0.01 * steps.mean())


def stride_grid(grid: Grid, stride: int) -> Grid:
    """Every `stride`-th cell centre of a grid; each represents the cells around it."""
    if stride == 1:
        return grid
    centres = [axis[::stride].numpy() for axis in grid.coordinates]
    if min(len(axis) for axis in centres) < 2:
        raise ConfigError(f"every {stride}-th cell leaves fewer than 2 of {grid.shape} cells along an axis")
    coarse = grid_around(centres, grid.boundary)
    weights = []
    for axis, (old, width) in enumerate(zip(grid.weights, coarse.weights, strict=True)):
        relative = grid.edges[axis].diff() / grid.extent[axis]
        by_width = bool((old / relative - 1).abs().max() < 1e-6)
        weights.append(width if by_width else old[::stride] / old[::stride].sum())
    return Grid(coarse.coordinates, coarse.edges, tuple(weights), coarse.boundary)


def increasing(centres: Numbers) -> tuple[Numbers, bool]:
    """Coordinates in increasing order, and whether they were reversed for it."""
    turned = len(centres) > 1 and bool(centres[-1] < centres[0])
    return (centres[::-1].copy() if turned else centres), turned


def stored_times(path: Path, key: str, stored: Numbers, frames: int) -> Numbers:
    """Stored times of the frames; one entry too many at the end, as PDEBench writes it, is dropped."""
    if len(stored) not in {frames, frames + 1}:
        raise mismatch(path, key, f"one time for each of {frames} frames", f"{len(stored)}")
    times = stored[:frames]
    if not (np.diff(times) > 0).all():
        index = int(np.flatnonzero(np.diff(times) <= 0)[0])
        found = f"{times[index]} before {times[index + 1]} at index {index}"
        raise mismatch(path, key, "increasing times", found)
    return times


def _exact_faces(centres: Numbers, faces: Tensor) -> Tensor:
    count = len(centres)
    width = (centres[-1] - centres[0]) / (count - 1)
    tolerance = _ROUNDING * float(np.abs(centres).max())
    even = centres[0] + width * np.arange(count)
    if tolerance > 0.02 * width or float(np.abs(centres - even).max()) > tolerance:
        return faces
    low, high = (_round_number(end, tolerance) for end in (centres[0] - width / 2, centres[-1] + width / 2))
    return torch.linspace(low, high, count + 1, dtype=torch.float64)


def _round_number(number: float, tolerance: float) -> float:
    """The shortest decimal within the tolerance if it is much shorter than the number, else the number."""
    digits = math.floor(-math.log10(tolerance)) - 2
    candidate = round(float(number), digits)
    return candidate + 0.0 if abs(candidate - number) <= tolerance else float(number)
