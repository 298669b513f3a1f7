"""Where the cells of a field lie and how much of the domain each stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.errors import ConfigError, ShapeError

Boundary = Literal["periodic", "wall", "outflow", "dirichlet"]
BOUNDARIES: tuple[str, ...] = get_args(Boundary)
LATITUDES = {"lat", "latitude", "lats"}
LONGITUDES = {"lon", "longitude", "lons"}
Numbers = npt.NDArray[np.float64]

_ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Coordinates are often computed in single precision; this is its rounding after a few operations."""


@dataclass(frozen=True, eq=False)
class Grid:
    """A tensor-product grid of cells; values live at the cell centres.

    `coordinates[a]` `(n_a,)` cell centres along axis a in physical units, increasing, float64;
    `edges[a]` `(n_a + 1,)` cell faces, so the domain runs from the first to the last of them;
    `weights[a]` `(n_a,)` share of the domain's volume, summing to one; the share of a cell is the product
    over axes. On a plain box they are the relative cell widths, on a globe the latitude axis has
    differences of the sine; `boundary[a]` what happens at the two ends of the axis.

    >>> Grid.uniform((4,), bounds=((0.0, 2.0),)).coordinates[0].tolist()
    [0.25, 0.75, 1.25, 1.75]
    """

    coordinates: tuple[Tensor, ...]
    edges: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    boundary: tuple[Boundary, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.coordinates) == len(self.edges) == len(self.weights):
            raise ShapeError(
                "a grid needs coordinates, edges and weights for each axis, got "
                f"{len(self.coordinates)}, {len(self.edges)} and {len(self.weights)} axes"
            )
        if self.boundary and len(self.boundary) != len(self.coordinates):
            raise ShapeError(f"{len(self.coordinates)} axes need as many boundaries, got {self.boundary}")
        if unknown := set(self.boundary) - set(BOUNDARIES):
            raise ConfigError(f"unknown boundary {sorted(unknown)}; known: {', '.join(BOUNDARIES)}")
        for centres, faces, weights in zip(self.coordinates, self.edges, self.weights, strict=True):
            _check_axis(centres, faces, weights)

    @classmethod
    def uniform(
        cls,
        shape: Sequence[int],
        bounds: Sequence[tuple[float, float]] | None = None,
        boundary: Sequence[Boundary] = (),
    ) -> Grid:
        """Equal cells on a box, by default the unit box."""
        bounds = [(0.0, 1.0)] * len(shape) if bounds is None else bounds
        if len(bounds) != len(shape):
            raise ShapeError(f"{len(shape)} axes need as many bounds, got {len(bounds)}")
        axes = zip(shape, bounds, strict=True)
        edges = [torch.linspace(low, high, size + 1, dtype=torch.float64) for size, (low, high) in axes]
        return cls.from_edges(edges, boundary)

    @classmethod
    def from_edges(cls, edges: Sequence[Tensor], boundary: Sequence[Boundary] = ()) -> Grid:
        """Cells between given faces, with centres half-way and volumes by width."""
        faces = tuple(torch.as_tensor(edge, dtype=torch.float64) for edge in edges)
        return cls(
            coordinates=tuple((edge[1:] + edge[:-1]) / 2 for edge in faces),
            edges=faces,
            weights=tuple(edge.diff() / (edge[-1] - edge[0]) for edge in faces),
            boundary=tuple(boundary),
        )

    @classmethod
    def from_centres(cls, centres: Sequence[Tensor], boundary: Sequence[Boundary] = ()) -> Grid:
        """Cells around given centres: faces half-way between, the outer ones as far as their neighbours."""
        exact = tuple(torch.as_tensor(axis, dtype=torch.float64) for axis in centres)
        return replace(cls.from_edges([_faces_between(axis) for axis in exact], boundary), coordinates=exact)

    @classmethod
    def latitude_longitude(cls, latitude: Tensor, longitude: Tensor) -> Grid:
        """The globe: latitudes (degrees, south to north) by longitudes; cell volumes by sine of latitude."""
        centres = [axis.to(torch.float64).numpy() for axis in (latitude, longitude)]
        return grid_around(centres, ("wall", "periodic"), latitude=0)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(axis.numel() for axis in self.coordinates)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Both ends of the domain along each axis."""
        return tuple((float(edge[0]), float(edge[-1])) for edge in self.edges)

    @property
    def extent(self) -> tuple[float, ...]:
        """Length of the domain along each axis."""
        return tuple(high - low for low, high in self.bounds)

    def is_uniform(self) -> bool:
        """Whether all cells are equal in width and in volume along each axis (to rounding)."""
        return all(
            bool((edge.diff() * len(weight) / (edge[-1] - edge[0]) - 1).abs().max() < 1e-6)
            and bool((weight * len(weight) - 1).abs().max() < 1e-6)
            for edge, weight in zip(self.edges, self.weights, strict=True)
        )

    def unit_coordinates(self) -> tuple[Tensor, ...]:
        """Cell centres with the domain mapped to [0, 1] along each axis."""
        return self._in_unit_box(self.coordinates)

    def unit_edges(self) -> tuple[Tensor, ...]:
        """Cell faces with the domain mapped to [0, 1] along each axis."""
        return self._in_unit_box(self.edges)

    def _in_unit_box(self, points: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple((axis - low) / (high - low) for axis, (low, high) in zip(points, self.bounds, strict=True))

    def volumes(self) -> Tensor:
        """Share of the domain that each cell stands for, `(*shape)`, summing to one."""
        return reduce(lambda left, right: left[..., None] * right, self.weights)


def _check_axis(centres: Tensor, faces: Tensor, weights: Tensor) -> None:
    if centres.ndim != 1 or faces.shape != (centres.numel() + 1,) or weights.shape != centres.shape:
        raise ShapeError(
            "an axis of n cells needs n centres, n + 1 edges and n weights, got "
            f"{tuple(centres.shape)}, {tuple(faces.shape)} and {tuple(weights.shape)}"
        )
    if not bool((faces.diff() > 0).all()):
        raise ShapeError("cell edges must increase along the axis; flip the axis, or drop repeated coordinates")
    if not bool((weights > 0).all()) or abs(float(weights.sum()) - 1.0) > 1e-6:
        raise ShapeError("cell weights must be positive and sum to one along each axis")


def _faces_between(centres: Tensor) -> Tensor:
    if centres.numel() < 2:
        raise ShapeError(f"an axis needs at least 2 cell centres to find its edges, got {centres.numel()}")
    inner = (centres[1:] + centres[:-1]) / 2
    first = centres[:1] - (inner[:1] - centres[:1])
    return torch.cat([first, inner, centres[-1:] + (centres[-1:] - inner[-1:])])


def grid_around(
    centres: Sequence[Numbers], boundary: Sequence[Boundary] = (), *, latitude: int | None = None
) -> Grid:
    """The grid of stored cell centres.

    Centres are kept as stored. Where they are equally spaced up to single precision, faces and volumes are
    made exactly equal, and the ends of the domain are taken as the round numbers that they nearly are.
    `latitude` names an axis in degrees, south to north, whose cells have volumes by the sine of latitude.

    >>> grid = grid_around([np.array([-60.0, 0.0, 60.0]), np.array([0.0, 90.0, 180.0, 270.0])], latitude=0)
    >>> [round(float(weight), 4) for weight in grid.weights[0]]
    [0.25, 0.5, 0.25]
    """
    plain = Grid.from_centres([torch.from_numpy(axis.copy()) for axis in centres])
    edges = [_exact_faces(axis, faces) for axis, faces in zip(centres, plain.edges, strict=True)]
    weights = [edge.diff() / (edge[-1] - edge[0]) for edge in edges]
    if latitude is not None:
        edges[latitude], weights[latitude] = _latitude_bands(centres[latitude], edges[latitude])
    return Grid(plain.coordinates, tuple(edges), tuple(weights), tuple(boundary))


def closes_circle(longitude: Numbers) -> bool:
    """Whether one step past the last longitude is the first one again."""
    steps = np.diff(longitude)
    gap = 360.0 - (longitude[-1] - longitude[0])
    return bool(abs(gap - steps.mean()) < 0.01 * steps.mean())


def globe_boundary(axes: Sequence[str], longitude: Numbers) -> tuple[Boundary, ...]:
    """Walls at the poles and a periodic longitude where axes of these names go round the globe; else unknown."""
    if len(axes) != 2 or axes[0].lower() not in LATITUDES or axes[1].lower() not in LONGITUDES:
        return ()
    return ("wall", "periodic") if len(longitude) > 1 and closes_circle(longitude) else ()


def _latitude_bands(centres: Numbers, faces: Tensor) -> tuple[Tensor, Tensor]:
    """Faces of latitudes, and shares of the area between them, ∝ sin(north face) - sin(south face).

    On all Gaussian latitudes the faces are put where these differences are the weights of Gauss-Legendre
    quadrature, so that means are exact for every polynomial in sin(latitude) up to degree 2n - 1.
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(centres))
    if np.abs(np.degrees(np.arcsin(nodes)) - centres).max() <= 1e-3:
        sines = np.concatenate([[-1.0], np.cumsum(weights)[:-1] - 1.0, [1.0]])
        return torch.from_numpy(np.degrees(np.arcsin(sines))), torch.from_numpy(weights / weights.sum())
    faces = faces.clamp(-90.0, 90.0)
    area = torch.deg2rad(faces).sin().diff()
    return faces, area / area.sum()


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
