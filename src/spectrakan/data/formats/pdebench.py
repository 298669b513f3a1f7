"""PDEBench's layouts: `tensor` files, flow files by array rank, and files with one group a sample.

| arrays | meaning | problem |
|---|---|---|
| `tensor` (sample, t, x) | one field | `diffusion_reaction1d` where `Nu` and `Rho` are stated, else unknown |
| `tensor` (sample, 1, x, y), `nu` (sample, x, y) | solution and coefficient | `darcy2d` |
| `density`, `pressure`, `Vx`[, `Vy`[, `Vz`]] (sample, t, *space) | compressible flow | `cns1d` in 1D |
| groups `0000`, ...: `data` (t, *space, channel), `grid/{x,y,z,t}` | by dimension and channels | see below |

Constants come from the attributes, else from the file's name (`Eta0.1`, `beta1.0`); the boundary from the
problem or the name (`periodic`, `trans`). Missing coordinates mean the unit box, missing times even frames on
[0, 1].
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from spectrakan.data.container import Container
from spectrakan.data.decoding import mismatch
from spectrakan.data.formats import mapping as mapped
from spectrakan.data.formats.mapping import SPACE, Axis, DataMapping, MappedArray, group_samples
from spectrakan.fields import Boundary, Trajectories

CONSTANTS = ("nu", "rho", "beta", "eta", "zeta", "mach")
GROUP = re.compile(r"^(\d+)/data$")

_IN_NAME = re.compile(r"(?<![a-z])(nu|rho|beta|eta|zeta|m)(\d+\.?\d*(?:e[-+]?\d+)?)")

GROUPED_FIELDS: Mapping[tuple[int, int], tuple[str, ...]] = {
    (2, 1): ("height",),
    (2, 2): ("activator", "inhibitor"),
    (1, 1): ("u",),
}
"""Fields of PDEBench's grouped files by number of space axes and channels: dam break, and two others."""


def read(container: Container) -> Trajectories | None:
    """A PDEBench file of any of the layouts above; None where the names of the arrays are others."""
    if "tensor" in container:
        return _read_darcy(container) if "nu" in container else _read_tensor(container)
    if {"density", "pressure", "Vx"} <= container.arrays.keys():
        return _read_flow(container)
    groups = sorted((match[1] for match in map(GROUP.match, container.arrays) if match), key=lambda g: (int(g), g))
    return _read_groups(container, groups) if groups else None


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
    axes = _axes(container, "tensor")
    reaction = len(axes) == 3 and {"nu", "rho"} <= constants(container).keys()
    values = (MappedArray(array="tensor", axes=axes, fields=("u",)),)
    boundary: tuple[Boundary, ...] = ("periodic",) if reaction else _boundary_by_name(container, len(axes) - 2)
    return _read_mapped(container, values, boundary, name="diffusion_reaction1d" if reaction else "")


def _read_darcy(container: Container) -> Trajectories:
    coefficient = container.array("nu").shape
    solution = container.array("tensor").shape
    if solution not in {(coefficient[0], 1, *coefficient[1:]), coefficient}:
        raise mismatch(container.path, "tensor", f"one frame for each of nu's {coefficient}", f"shape {solution}")
    axes: tuple[Axis, ...] = ("sample", "x", "y") if len(solution) == 3 else ("sample", "time", "x", "y")
    values = MappedArray(array="tensor", axes=axes, fields=("pressure",))
    given = MappedArray(array="nu", axes=("sample", "x", "y"), fields=("coefficient",), positive=("coefficient",))
    return _read_mapped(container, (values,), ("dirichlet", "dirichlet"), name="darcy2d", inputs=(given,))


def _read_flow(container: Container) -> Trajectories:
    axes = _axes(container, "density")
    dims = len(axes) - 2
    velocities = {"Vx": "velocity"} if dims == 1 else {f"V{axis}": f"velocity_{axis}" for axis in SPACE[:dims]}
    names = {"density": "density", **velocities, "pressure": "pressure"}
    values = tuple(
        MappedArray(array=key, axes=axes, fields=(name,), positive=() if key in velocities else (name,))
        for key, name in names.items()
    )
    boundary = _boundary_by_name(container, dims)
    return _read_mapped(container, values, boundary, name="cns1d" if dims == 1 else "")


def _read_groups(container: Container, groups: Sequence[str]) -> Trajectories:
    for name in container.arrays:
        if name.endswith("/data") and not GROUP.match(name):
            remedy = "rename the group, or select the arrays by a mapping"
            raise mismatch(container.path, name, "a group that is named by a number", "another name", remedy)
    whole = group_samples(container, [f"{group}/data" for group in groups])
    dims, channels = len(whole.shape) - 3, whole.shape[-1]
    if not 1 <= dims <= 3:
        raise mismatch(container.path, f"{groups[0]}/data", "axes (t, x[, y[, z]], channel)", f"{whole.shape[1:]}")
    names = GROUPED_FIELDS.get((dims, channels), tuple(f"u{channel}" for channel in range(channels)))
    positive = ("height",) if "height" in names else ()
    axes: tuple[Axis, ...] = ("sample", "time", *SPACE[:dims], "channel")
    dam_break = (dims, channels) == (2, 1)
    return _read_mapped(
        replace(container, arrays={**container.arrays, "data": whole}),
        (MappedArray(array="data", axes=axes, fields=names, positive=positive),),
        ("outflow", "outflow") if dam_break else (),
        name="shallow_water2d" if dam_break else "",
        coordinates=f"{_common_grid(container, groups)}/grid/{{}}",
    )


def _read_mapped(
    container: Container,
    values: tuple[MappedArray, ...],
    boundary: tuple[Boundary, ...],
    *,
    name: str,
    inputs: tuple[MappedArray, ...] = (),
    coordinates: str = "{}-coordinate",
) -> Trajectories:
    """The mapped arrays with the coordinates and times of the file, as far as it has them, and its constants."""
    stored = {axis: coordinates.format(axis) for axis in SPACE if axis in values[0].axes}
    located = all(key in container for key in stored.values())
    clock = coordinates.format("t")
    mapping = DataMapping(
        values=values,
        inputs=inputs,
        coordinates=stored if located else {},
        times=clock if clock in container and not inputs else "",
        constants=constants(container),
        boundary=boundary,
        name=name,
    )
    return mapped.read(container, mapping)


def _axes(container: Container, key: str) -> tuple[Axis, ...]:
    shape = container.array(key).shape
    if not 3 <= len(shape) <= 5:
        raise mismatch(container.path, key, "axes (sample, time, x[, y[, z]])", f"shape {shape}")
    return ("sample", "time", *SPACE[: len(shape) - 2])


def _common_grid(container: Container, groups: Sequence[str]) -> str:
    """The first group that has a grid; all grids must equal it."""
    first: dict[str, str] = {}
    for group, axis in product(groups, (*SPACE, "t")):
        key = f"{group}/grid/{axis}"
        if key not in container:
            continue
        owner = first.setdefault(axis, group)
        if not np.array_equal(container.vector(key), container.vector(f"{owner}/grid/{axis}")):
            raise mismatch(container.path, key, f"the same numbers as in group {owner}", "others")
    return next(iter(first.values()), groups[0])


def _boundary_by_name(container: Container, dims: int) -> tuple[Boundary, ...]:
    words: dict[str, Boundary] = {"periodic": "periodic", "_trans": "outflow"}
    found = [boundary for word, boundary in words.items() if word in container.path.stem.lower()]
    return tuple(found[:1]) * dims
