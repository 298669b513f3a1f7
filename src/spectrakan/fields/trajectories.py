"""A set of solutions of one PDE: many samples, each a field in time, all on one grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from spectrakan.errors import ConfigError, ShapeError, require_package
from spectrakan.fields.display import as_html, draw_sample
from spectrakan.fields.given import instants, plain_numbers, stated_grid
from spectrakan.fields.grid import LATITUDES, Boundary, Grid, globe_boundary, grid_around
from spectrakan.fields.grid_part import GridPart, SpaceGroup


@runtime_checkable
class Source(Protocol):
    """An array in memory, or one that is read from a file part by part."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""

    def __getitem__(self, key: Any, /) -> Any:
        """The part that `key` names, as a NumPy array."""


@runtime_checkable
class Array(Source, Protocol):
    """What an array must offer here: a NumPy array, or one that is read from a file piece by piece."""

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> npt.NDArray[Any]:
        """The whole, as a NumPy array."""


Progress = Callable[[int, int], None]
"""Called with (done, total) whenever a piece of long work is done; both count samples, or bytes in a download."""

BLOCK_BYTES = 2**26
"""Most that is read in one piece while a large array is copied (64 MiB)."""


def samples_per_block(array: Array) -> int:
    """How many samples are at most `BLOCK_BYTES`; at least one."""
    return max(1, BLOCK_BYTES // max(1, int(np.prod(array.shape[1:])) * np.dtype(array.dtype).itemsize))


def blocks(array: Array) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The samples of an array in pieces of at most `BLOCK_BYTES` or one sample, each with the number of its first."""
    step = samples_per_block(array)
    for first in range(0, array.shape[0], step):
        yield first, np.asarray(array[first : first + step])


@dataclass(frozen=True)
class FieldSpec:
    """What one channel of an array means."""

    name: str
    unit: str = ""
    positive: bool = False
    """Whether the quantity cannot be zero or below (density, pressure), so that its logarithm exists."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """Solutions `values` `(samples, time, *space, channel)` on `grid` at `times`.

    Steady tasks have one frame and their own input fields `inputs` `(samples, 1, *space, channel)`;
    in time-dependent tasks the inputs are earlier frames of `values` and `inputs` is None.
    `params` `(samples, num_params)` are scalars that differ between samples, named by `param_names`.
    Arrays keep the order and the type of number they were stored with.
    """

    values: Array
    grid: Grid
    times: npt.NDArray[np.float64]
    fields: tuple[FieldSpec, ...]
    inputs: Array | None = None
    input_fields: tuple[FieldSpec, ...] = ()
    params: npt.NDArray[np.float64] | None = None
    param_names: tuple[str, ...] = ()
    name: str = ""
    """Name of the problem that the data belong to; empty when unknown."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """Physical parameters that all samples share (viscosity, forcing), as far as they are known."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """`seed` and `params` that `generate` made the samples from, so that the same ones can be solved on another
    grid or for longer; empty where they were not generated, or were changed since."""

    def __post_init__(self) -> None:
        space = self.grid.shape
        if self.times.ndim != 1 or not (np.isfinite(self.times).all() and (np.diff(self.times) > 0).all()):
            raise ShapeError("times must be one finite, increasing number for each frame")
        for specs in (self.fields, self.input_fields):
            names = [spec.name for spec in specs]
            if twice := {name for name in names if names.count(name) > 1}:
                raise ShapeError(f"each field needs a name of its own, these come twice: {', '.join(sorted(twice))}")
        _check("values", self.values.shape, (None, len(self.times), *space, len(self.fields)))
        if self.inputs is not None:
            _check("inputs", self.inputs.shape, (self.num_samples, 1, *space, len(self.input_fields)))
            if len(self.times) != 1:
                raise ShapeError(f"a steady task has one frame, got {len(self.times)} beside separate inputs")
        if self.params is not None:
            _check("params", self.params.shape, (self.num_samples, len(self.param_names)))
        elif self.param_names:
            raise ShapeError(f"params {self.param_names} are named but not given")

    @classmethod
    def from_arrays(
        cls,
        values: npt.ArrayLike,
        fields: Sequence[str | FieldSpec],
        *,
        times: npt.ArrayLike | None = None,
        grid: Grid | Sequence[npt.ArrayLike] | npt.ArrayLike | None = None,
        boundary: Sequence[Boundary] = (),
        params: npt.ArrayLike | None = None,
        param_names: Sequence[str] = (),
        inputs: npt.ArrayLike | None = None,
        input_fields: Sequence[str | FieldSpec] = (),
        name: str = "own_problem",
    ) -> Trajectories:
        """Trajectories from arrays in memory; what does not fit raises `ShapeError` with the remedy.

        `values` `(samples, time, *space, fields)`; for a steady problem `inputs` `(samples, *space, input fields)`
        are the input fields, and neither array needs its time axis. `fields` names the last axis. `grid` is a `Grid`
        or one array of cell centres for each axis, by default equal cells on the unit box; `boundary` says
        what happens at the ends of each axis (one word for all axes, or one for each). `times` are by default
        0, 1, 2, ...; dates become days since the first, durations days. `params` `(samples, num_params)` are numbers
        that differ between samples, such as a viscosity. Masked numbers become NaN.

        >>> heat = np.random.default_rng(0).random((8, 5, 32, 1))
        >>> Trajectories.from_arrays(heat, fields=("heat",), boundary=("periodic",), name="my_heat")
        Trajectories(my_heat: 8 samples, 5 frames of heat on 32 cells, periodic)
        """
        names, input_names = _specs(fields), _specs(input_fields)
        array = plain_numbers("values", values)
        given = None if inputs is None else plain_numbers("inputs", inputs)
        if given is not None:
            array, given = _with_time_axis(array), _with_time_axis(given)
            input_names = input_names or tuple(FieldSpec(f"input_{index}") for index in range(given.shape[-1]))
        if not 4 <= array.ndim <= 6 or array.shape[-1] != len(names):
            raise ShapeError(
                "values must have axes (samples, time, 1 to 3 axes of space, fields) and as many fields as names, "
                f"got shape {array.shape} and the names {tuple(spec.name for spec in names)}; a single field without "
                "its last axis gets one by values[..., None], a single trajectory gets its first by values[None]"
            )
        rows, params_of = None, _specs(param_names, "param_names")
        if params is not None:
            rows = plain_numbers("params", params).astype(np.float64)
            rows = rows[:, None] if rows.ndim == 1 else rows
            params_of = params_of or tuple(FieldSpec(f"param_{index}") for index in range(rows.shape[1]))
        return cls(
            values=array,
            grid=stated_grid(grid, array.shape[2:-1], boundary),
            times=instants(np.arange(array.shape[1]) if times is None else np.asarray(times)),
            fields=names,
            inputs=given,
            input_fields=input_names,
            params=rows,
            param_names=tuple(spec.name for spec in params_of),
            name=name,
        )

    @classmethod
    def from_xarray(
        cls,
        dataset: Any,
        fields: Sequence[str] = (),
        *,
        sample_dim: str | None = "sample",
        time_dim: str = "time",
        boundary: Sequence[Boundary] = (),
        name: str = "",
    ) -> Trajectories:
        """Trajectories from an `xarray.Dataset`: `fields` share their dimensions, by default the most there are.

        Without a dimension `sample_dim` the set is one long trajectory. All dimensions but sample and time are
        space, in the order of the first variable; their coordinates, if there are any, are the cell centres, and
        latitudes and longitudes make the grid that a netCDF file gets. Variables `(sample,)` are parameters; beside
        fields of one instant those without time are the input fields of a steady problem.
        """
        if hasattr(dataset, "to_dataset"):
            dataset = dataset.to_dataset(name=dataset.name or "u")
        dims = {str(key): set(item.dims) for key, item in dataset.data_vars.items() if item.dtype.kind in "fiu"}
        names = [fields] if isinstance(fields, str) else list(fields)
        names = names or [key for key in dims if len(dims[key]) == max(map(len, dims.values()))]
        if missing := [key for key in names if key not in dims] or ([] if names else ["of numbers"]):
            raise ShapeError(f"the data set has no variable {', '.join(missing)}; it has {list(dataset.data_vars)}")
        first = dataset[names[0]]
        if time_dim not in first.dims:
            raise ShapeError(f"'{names[0]}' has the dimensions {first.dims}; name the one of time by time_dim=")
        if other := [key for key in names if dims[key] != set(first.dims)]:
            raise ShapeError(f"'{other[0]}' has other dimensions than '{names[0]}'; name those that agree by fields=")
        # Axes of one cell (a level) are dropped.
        space = [str(dim) for dim in first.dims if dim not in (sample_dim, time_dim) and first.sizes[dim] > 1]
        single = [dim for dim in first.dims if dim not in (sample_dim, time_dim, *space)]
        before = [key for key in dims if dims[key] == set(first.dims) - {time_dim} and first.sizes[time_dim] == 1]
        known = [key for key in dims if dims[key] == {sample_dim} <= set(first.dims)]
        located = bool(space) and all(dim in dataset.coords for dim in space)
        dataset = dataset.squeeze(single).sortby(space if located else [])
        centres = [np.asarray(dataset[dim].values, dtype=np.float64) for dim in space] if located else []
        latitude = next((axis for axis, dim in enumerate(space) if dim.lower() in LATITUDES), None)
        grid = grid_around(centres, globe_boundary(space, centres[-1]), latitude=latitude) if located else None

        def stacked(keys: Sequence[str], *dims: str) -> npt.NDArray[Any]:
            order = [*([sample_dim] if sample_dim in first.dims else []), *dims]
            array = np.stack([dataset[key].transpose(*order).values for key in keys], axis=-1)
            return array if sample_dim in first.dims else array[None]

        def specs(keys: Sequence[str]) -> tuple[FieldSpec, ...]:
            return tuple(FieldSpec(key, str(dataset[key].attrs.get("units", ""))) for key in keys)

        return cls.from_arrays(
            stacked(names, time_dim, *space),
            specs(names),
            times=dataset[time_dim].values if time_dim in dataset.coords else None,
            grid=grid,
            boundary=boundary,
            params=stacked(known) if known else None,
            param_names=known,
            inputs=stacked(before, *space) if before else None,
            input_fields=specs(before),
            name=name or str(dataset.attrs.get("title", "own_problem")),
        )

    def to_xarray(self) -> Any:
        """The same as an `xarray.Dataset` with a variable for each field; needs xarray (extra `climate`).

        A field whose name is that of an axis or of another field gets the prefix `field_` or `input_`.
        """
        require_package("xarray", "climate", "to_xarray")
        import xarray

        axes = ("x", "y", "z")[: len(self.grid.shape)]
        coords: dict[str, Any] = {"time": self.times}
        coords |= {axis: centres.numpy() for axis, centres in zip(axes, self.grid.coordinates, strict=True)}
        variables: dict[str, Any] = {}
        stored = [("field", ("sample", "time", *axes), np.asarray(self.values), self.fields)]
        if self.inputs is not None:
            stored.append(("input", ("sample", *axes), np.asarray(self.inputs)[:, 0], self.input_fields))
        for kind, dims, values, specs in stored:
            for channel, spec in enumerate(specs):
                taken = spec.name in {*coords, *variables}
                key = f"{kind}_{spec.name}" if taken else spec.name
                variables[key] = (dims, values[..., channel], {"units": spec.unit})
        if self.params is not None:
            variables |= {key: (("sample",), self.params[:, i]) for i, key in enumerate(self.param_names)}
        return xarray.Dataset(variables, coords=coords, attrs={"title": self.name})

    def with_arrays(self, change: Callable[[Array], Array], **facts: Any) -> Trajectories:
        """The same with `change` applied to `values` and `inputs`, and with other `facts`."""
        inputs = None if self.inputs is None else change(self.inputs)
        return replace(self, values=change(self.values), inputs=inputs, **facts)

    def select(self, samples: Sequence[int] | slice) -> Trajectories:
        """Some samples, read into memory unless a slice is asked of an array in a file."""
        chosen: Any = samples if isinstance(samples, slice) else np.asarray(samples, dtype=np.int64)
        params = None if self.params is None else self.params[chosen]
        return self.with_arrays(lambda array: _cut(array, chosen), params=params, origin={})

    def between(self, start: int, stop: int) -> Trajectories:
        """The frames from `start` up to and without `stop`; frames of a file stay unread."""
        return self._frames(slice(start, stop))

    def every(self, stride: int) -> Trajectories:
        """Every `stride`-th frame, from the first on; frames of a file stay unread."""
        return self._frames(slice(None, None, stride))

    def _frames(self, frames: slice) -> Trajectories:
        return replace(self, values=_cut(self.values, slice(None), frames), times=self.times[frames], origin={})

    def cut(self, space: SpaceGroup) -> Trajectories:
        """The cells of space that one process holds; those of a file stay unread."""
        start, stop = space.ends(self.grid.shape[0])[space.rank : space.rank + 2]
        return self.cells(GridPart.of(self.grid, space), slice(start, stop))

    def cells(self, grid: Grid, *cells: slice) -> Trajectories:
        """The cells that slices along the first axes of space name, which form `grid`; files stay unread."""
        return self.with_arrays(lambda array: _cut(array, slice(None), slice(None), *cells), grid=grid, origin={})

    def only_fields(self, names: Sequence[str]) -> Trajectories:
        """The same with some of the fields, in the order given."""
        there = [spec.name for spec in self.fields]
        if missing := [name for name in names if name not in there]:
            raise ConfigError(f"{self.name or 'the set'} has the fields {', '.join(there)}, not {', '.join(missing)}")
        channels = [there.index(name) for name in names]
        values = np.stack([np.asarray(self.values[..., channel]) for channel in channels], axis=-1)
        return replace(self, values=values, fields=tuple(self.fields[channel] for channel in channels), origin={})

    def windows_in_time(self, length: int) -> Trajectories:
        """Each trajectory cut into successive pieces of `length` frames, each a sample; a rest is dropped.

        Times are those of the first piece.
        """
        pieces = len(self.times) // length
        values = np.asarray(self.values)[:, : pieces * length]
        cut = values.reshape(-1, length, *values.shape[2:])
        params = None if self.params is None else np.repeat(self.params, pieces, axis=0)
        return replace(self, values=cut, times=self.times[:length], params=params, origin={})

    def plot(self, sample: int = 0, field: str | int = 0) -> Any:
        """A matplotlib figure of one field of one sample: space and time in 1D, maps of some frames in 2D."""
        return draw_sample(self, sample, field)

    def __repr__(self) -> str:
        return f"Trajectories({self.summary})"

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def summary(self) -> str:
        """The set in one line: name, samples, frames, fields, cells, boundary and parameters.

        >>> Trajectories.from_arrays(np.zeros((2, 3, 8, 8, 1)), fields=("u",), name="zero").summary
        'zero: 2 samples, 3 frames of u on 8 x 8 cells'
        """
        cells = " x ".join(str(size) for size in self.grid.shape)
        names = ", ".join(spec.name for spec in self.fields)
        before = ", ".join(spec.name for spec in self.input_fields)
        content = f"{before} -> {names}" if self.steady else f"{len(self.times)} frames of {names}"
        ends = dict.fromkeys(self.grid.boundary)
        ending = f", {' and '.join(ends)}" if ends else ""
        given = f", parameters {', '.join(self.param_names)}" if self.param_names else ""
        return f"{self.name or 'unnamed'}: {self.num_samples} samples, {content} on {cells} cells{ending}{given}"

    @property
    def num_samples(self) -> int:
        """Number of trajectories."""
        return int(self.values.shape[0])

    @property
    def steady(self) -> bool:
        """Whether inputs and outputs are different fields of one instant."""
        return self.inputs is not None

    def __len__(self) -> int:
        return self.num_samples


def require_trajectories(data: object, other: str = "") -> None:
    """Refuse what is no set of trajectories; the error says how arrays, xarray sets and files become one."""
    if not isinstance(data, Trajectories):
        raise ConfigError(
            f"data must be Trajectories{other}, got {type(data).__name__}; arrays become them by "
            "sk.Trajectories.from_arrays, xarray sets by from_xarray, files by sk.load_dataset"
        )


def _check(name: str, shape: tuple[int, ...], expected: tuple[int | None, ...]) -> None:
    if len(shape) != len(expected) or any(
        want not in (None, have) for have, want in zip(shape, expected, strict=True)
    ):
        wanted = ", ".join("samples" if size is None else str(size) for size in expected)
        raise ShapeError(f"{name} must have shape ({wanted}) to fit grid, times and fields, got {tuple(shape)}")


def _specs(fields: Sequence[str | FieldSpec], what: str = "fields") -> tuple[FieldSpec, ...]:
    if isinstance(fields, str):
        raise ShapeError(f"{what} must be a list of names such as ('{fields}',), got the text '{fields}'")
    return tuple(entry if isinstance(entry, FieldSpec) else FieldSpec(str(entry)) for entry in fields)


def _with_time_axis(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A steady field `(samples, *space, fields)` with a time axis of one frame, unless it has one."""
    return array if array.ndim >= 4 and array.shape[1] == 1 else array[:, None]


def _cut(array: Array, *key: Any) -> Array:
    """A part of an array; slices of an array in a file stay unread, samples in a list are read one by one."""
    if not isinstance(array, np.ndarray):
        if isinstance(key[0], np.ndarray):
            return np.stack([np.asarray(array[int(sample)]) for sample in key[0]])
        narrowed: Array = array.narrow(*key)  # type: ignore[attr-defined]
        return narrowed
    return np.asarray(array[key])
