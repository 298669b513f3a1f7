"""PDEBench's layouts: `tensor` files, flow files by array rank, and files with one group a sample.

| arrays | meaning | task |
|---|---|---|
| `tensor` (sample, t, x) | one field | `diffusion_reaction1d` where `Nu` and `Rho` are stated, else unknown |
| `tensor` (sample, 1, x, y), `nu` (sample, x, y) | solution and coefficient | `darcy2d` |
| `density`, `pressure`, `Vx`[, `Vy`[, `Vz`]] (sample, t, *space) | compressible flow | `cns1d` in 1D |
| groups `0000`, ...: `data` (t, *space, channel), `grid/{x,y,z,t}` | by dimension and channels | see below |

Constants come from the attributes, else from the file's name (`Eta0.1`, `beta1.0`); the boundary from the
task or the name (`periodic`, `trans`). Missing coordinates mean the unit box, missing times even frames on
[0, 1].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spectrakan.data.axes import grid_around, increasing, stored_times, unit_times
from spectrakan.data.container import Container
from spectrakan.data.decoding import mismatch
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.data.source import GroupedSource, Source
from spectrakan.fields import Boundary, FieldSpec, Grid, Trajectories

VELOCITIES = ("Vx", "Vy", "Vz")
AXES = ("x", "y", "z")
CONSTANTS = ("nu", "rho", "beta", "eta", "zeta", "mach")
GROUP = re.compile(r"^(\d+)/data$")

_IN_NAME = re.compile(r"(?<![a-z])(nu|rho|beta|eta|zeta|m)(\d+\.?\d*(?:e[-+]?\d+)?)")

GROUPED_FIELDS: Mapping[tuple[int, int], tuple[str, ...]] = {
    (2, 1): ("height",),
    (2, 2): ("activator", "inhibitor"),
    (1, 1): ("u",),
}
"""Fields of PDEBench's grouped files by number of space axes and channels: dam break, and two others."""


def recognises(container: Container) -> bool:
    """Whether the names of the arrays are PDEBench's."""
    return (
        "tensor" in container
        or {"density", "pressure", "Vx"} <= container.arrays.keys()
        or any(GROUP.match(name) for name in container.arrays)
    )


def read(container: Container) -> Trajectories:
    """A PDEBench file of any of the layouts above."""
    if "tensor" in container:
        return _read_darcy(container) if "nu" in container else _read_tensor(container)
    if "density" in container:
        return _read_flow(container)
    return _read_groups(container)


def constants(container: Container) -> dict[str, float]:
    """Physical constants by lower-case name, from the attributes or else from the file's name."""
    stated = _IN_NAME.findall(container.path.stem.lower())
    known = {"mach" if name == "m" else name: float(number) for name, number in stated}
    for name, value in container.attributes.get("", {}).items():
        number = np.asarray(value)
        if name.lower() in CONSTANTS and number.size == 1 and number.dtype.kind in "fiu":
            known[name.lower()] = float(number.reshape(()))
    return known


def _read_tensor(container: Container) -> Trajectories:
    source = container.array("tensor")
    dims = len(source.shape) - 2
    if not 1 <= dims <= 3:
        raise mismatch(container.path, "tensor", "axes (sample, time, x[, y[, z]])", f"shape {source.shape}")
    known = constants(container)
    reaction = dims == 1 and {"nu", "rho"} <= known.keys()
    boundary: tuple[Boundary, ...] = ("periodic",) if reaction else _boundary_by_name(container, dims)
    grid, flips = _grid(container, source.shape[2:], "{}-coordinate", boundary)
    values = LazyArray.stack([Part(source, (*range(dims + 2), None))])
    return Trajectories(
        values=_flip(values, flips),
        grid=grid,
        times=_times(container, "t-coordinate", source.shape[1]),
        fields=(FieldSpec("u"),),
        task="diffusion_reaction1d" if reaction else "",
        constants=known,
    )


def _read_darcy(container: Container) -> Trajectories:
    coefficient = container.ranked("nu", ("sample", "x", "y"))
    solution = container.array("tensor")
    space = coefficient.shape[1:]
    steady = {(coefficient.shape[0], 1, *space), (coefficient.shape[0], *space)}
    if solution.shape not in steady:
        expected = f"one frame for each of nu's {coefficient.shape}"
        raise mismatch(container.path, "tensor", expected, f"shape {solution.shape}")
    grid, flips = _grid(container, space, "{}-coordinate", ("dirichlet", "dirichlet"))
    axes = (0, 1, 2, 3, None) if len(solution.shape) == 4 else (0, None, 1, 2, None)
    return Trajectories(
        values=_flip(LazyArray.stack([Part(solution, axes)]), flips),
        grid=grid,
        times=unit_times(1),
        fields=(FieldSpec("pressure"),),
        inputs=_flip(LazyArray.stack([Part(coefficient, (0, None, 1, 2, None))]), flips),
        input_fields=(FieldSpec("coefficient", positive=True),),
        task="darcy2d",
        constants=constants(container),
    )


def _read_flow(container: Container) -> Trajectories:
    density = container.array("density")
    dims = len(density.shape) - 2
    if not 1 <= dims <= 3:
        raise mismatch(container.path, "density", "axes (sample, time, x[, y[, z]])", f"shape {density.shape}")
    keys = ("density", *VELOCITIES[:dims], "pressure")
    sources = [container.array(key) for key in keys]
    for key, source in zip(keys, sources, strict=True):
        if source.shape != density.shape:
            raise mismatch(container.path, key, f"density's shape {density.shape}", f"{source.shape}")
    boundary = _boundary_by_name(container, dims)
    grid, flips = _grid(container, density.shape[2:], "{}-coordinate", boundary)
    axes = (*range(dims + 2), None)
    velocities = ["velocity"] if dims == 1 else [f"velocity_{axis}" for axis in AXES[:dims]]
    return Trajectories(
        values=_flip(LazyArray.stack([Part(source, axes) for source in sources]), flips),
        grid=grid,
        times=_times(container, "t-coordinate", density.shape[1]),
        fields=(
            FieldSpec("density", positive=True),
            *(FieldSpec(name) for name in velocities),
            FieldSpec("pressure", positive=True),
        ),
        task="cns1d" if dims == 1 else "",
        constants=constants(container),
    )


def _read_groups(container: Container) -> Trajectories:
    groups = sorted((match[1] for match in map(GROUP.match, container.arrays) if match), key=_number)
    for name in container.arrays:
        if name.endswith("/data") and not GROUP.match(name):
            remedy = "rename the group, or say by a mapping which arrays to take"
            raise mismatch(container.path, name, "a group with a number for a name", "another", remedy)
    members: list[Source] = [container.array(f"{group}/data") for group in groups]
    first = members[0].shape
    dims = len(first) - 2
    if not 1 <= dims <= 3:
        raise mismatch(container.path, f"{groups[0]}/data", "axes (t, x[, y[, z]], channel)", f"shape {first}")
    for group, member in zip(groups, members, strict=True):
        if member.shape != first:
            raise mismatch(container.path, f"{group}/data", f"the first group's shape {first}", f"{member.shape}")
    place = _common_grid(container, groups)
    dam_break = (dims, first[-1]) == (2, 1)
    boundary: tuple[Boundary, ...] = ("outflow", "outflow") if dam_break else ()
    grid, flips = _grid(container, first[1:-1], f"{place}/grid/{{}}", boundary)
    names = GROUPED_FIELDS.get((dims, first[-1]), tuple(f"u{channel}" for channel in range(first[-1])))
    source = GroupedSource(tuple(members))
    return Trajectories(
        values=_flip(LazyArray.stack([Part(source, tuple(range(dims + 3)))]), flips),
        grid=grid,
        times=_times(container, f"{place}/grid/t", first[0]),
        fields=tuple(FieldSpec(name, positive=name == "height") for name in names),
        task="shallow_water2d" if dam_break else "",
    )


def _number(group: str) -> tuple[int, str]:
    return int(group), group


def _common_grid(container: Container, groups: Sequence[str]) -> str:
    """The first group that has a grid; all grids must be its."""
    names = [f"grid/{axis}" for axis in (*AXES, "t")]
    withs = [group for group in groups if any(f"{group}/{name}" in container for name in names)]
    if not withs:
        return groups[0]
    for name in names:
        stored = [(group, container.vector(f"{group}/{name}")) for group in withs if f"{group}/{name}" in container]
        for group, numbers in stored[1:]:
            if not np.array_equal(numbers, stored[0][1]):
                raise mismatch(
                    container.path,
                    f"{group}/{name}",
                    f"the same numbers as in group {stored[0][0]}",
                    "others",
                )
    return withs[0]


def _grid(
    container: Container, shape: Sequence[int], pattern: str, boundary: tuple[Boundary, ...]
) -> tuple[Grid, tuple[bool, ...]]:
    """The grid of a file, and which axes are stored in decreasing order."""
    centres, flips = [], []
    for axis, size in zip(AXES, shape, strict=False):
        key = pattern.format(axis)
        if key not in container:
            return Grid.uniform(tuple(shape), boundary=boundary), (False,) * len(shape)
        stored, turned = increasing(container.vector(key))
        if len(stored) != size:
            raise mismatch(container.path, key, f"{size} cell centres along {axis}", f"{len(stored)}")
        centres.append(stored)
        flips.append(turned)
    return grid_around(centres, boundary), tuple(flips)


def _flip(values: LazyArray, flips: Sequence[bool]) -> LazyArray:
    space = [slice(None, None, -1) if turned else slice(None) for turned in flips]
    return values.narrow(slice(None), slice(None), *space)


def _times(container: Container, key: str, frames: int) -> Any:
    if key not in container:
        return unit_times(frames)
    return stored_times(container.path, key, container.vector(key), frames)


def _boundary_by_name(container: Container, dims: int) -> tuple[Boundary, ...]:
    name = container.path.stem.lower()
    periodic: Boundary = "periodic"
    outflow: Boundary = "outflow"
    if "periodic" in name:
        return (periodic,) * dims
    return (outflow,) * dims if "_trans" in name else ()
