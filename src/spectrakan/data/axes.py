"""Grids and times from stored coordinates, which are rounded, reversed or one too many."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.data.decoding import mismatch
from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.fields.grid import closes_circle, grid_around

Numbers = npt.NDArray[np.float64]


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
