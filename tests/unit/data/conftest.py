"""Example sets for the tests of this package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from spectrakan.fields import FieldSpec, Grid, Trajectories


def _in_time(dims: int = 2, samples: int = 3, dtype: type = np.float32) -> Trajectories:
    rng = np.random.default_rng(dims)
    space = (6, 5, 4)[:dims]
    values = rng.standard_normal((samples, 4, *space, 2)).astype(dtype)
    values[0, 1, 0, ..., 1] = np.nan
    edges = [torch.linspace(0.1, 2.0, size + 1, dtype=torch.float64) ** 1.5 for size in space]
    return Trajectories(
        values=values,
        grid=Grid.from_edges(edges, ("periodic", "wall", "outflow")[:dims]),
        times=np.array([0.0, 0.1, 0.3, 0.7]),
        fields=(FieldSpec("density", "kg/m³", positive=True), FieldSpec("x", "m/s")),
        params=rng.standard_normal((samples, 2)),
        param_names=("Re", "Ma"),
        name="made up",
        constants={"nu": 1 / 3, "beta": -0.1},
        origin={"seed": 7, "params": {"nu": [0.1, 0.2]}},
    )


@pytest.fixture
def in_time() -> Callable[..., Trajectories]:
    """Makes a time-dependent set on an uneven grid, with a NaN, parameters, units and constants."""
    return _in_time


@pytest.fixture
def steady() -> Trajectories:
    """A steady set on the globe; input and output fields share a name, and one name has a space."""
    rng = np.random.default_rng(9)
    latitude = torch.linspace(-75.0, 75.0, 6, dtype=torch.float64)
    return Trajectories(
        values=rng.standard_normal((3, 1, 6, 8, 1)),
        grid=Grid.latitude_longitude(latitude, torch.arange(0.0, 360.0, 45.0)),
        times=np.array([2.0]),
        fields=(FieldSpec("u", "hPa"),),
        inputs=rng.standard_normal((3, 1, 6, 8, 2)),
        input_fields=(FieldSpec("u", "K"), FieldSpec("land fraction")),
        name="climate2d",
    )


def _assert_same(found: Trajectories, expected: Trajectories) -> None:
    for name in ("values", "inputs", "params", "times"):
        have, want = getattr(found, name), getattr(expected, name)
        assert (have is None) == (want is None), name
        if want is not None:
            assert have.dtype == want.dtype, name
            np.testing.assert_array_equal(np.asarray(have), np.asarray(want), err_msg=name)
    for name in ("fields", "input_fields", "param_names", "name"):
        assert getattr(found, name) == getattr(expected, name), name
    assert dict(found.constants) == dict(expected.constants)
    assert dict(found.origin) == dict(expected.origin)
    assert found.grid.boundary == expected.grid.boundary
    for name in ("coordinates", "edges", "weights"):
        for have, want in zip(getattr(found.grid, name), getattr(expected.grid, name), strict=True):
            assert torch.equal(have, want), name


@pytest.fixture
def assert_same() -> Callable[[Trajectories, Trajectories], None]:
    """Fails unless two sets are equal to the last bit."""
    return _assert_same
