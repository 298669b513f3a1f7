"""Which part of the sphere each point of a latitude-longitude grid stands for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.fields import Grid

Axis = npt.NDArray[np.float64]


def globe_grid(latitude: Axis, longitude: Axis) -> Grid:
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


def closes_circle(longitude: Axis) -> bool:
    """Whether one step past the last longitude is the first one again."""
    steps = np.diff(longitude)
    gap = 360.0 - (longitude[-1] - longitude[0])
    return bool(abs(gap - steps.mean()) < 0.01 * steps.mean())
