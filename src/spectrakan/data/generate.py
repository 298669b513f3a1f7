"""Samples of a problem, made by its solver: sample i depends on the recipe and on i, not on how many are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.config import as_mapping, build_settings
from spectrakan.data.container import Block
from spectrakan.data.lazy import LazyArray, Part
from spectrakan.data.problems import equation_of
from spectrakan.errors import ConfigError, ShapeError, SpectraKANError
from spectrakan.fields import Progress, Trajectories
from spectrakan.numerics.time_integration import check_times
from spectrakan.pde.equation import Equation

CHUNK_VALUES = 2**24
"""Numbers that are solved for at a time: 128 MB in float64."""


def generate(
    problem: str,
    num_samples: int,
    resolution: int | Sequence[int] | None = None,
    seed: int = 0,
    *,
    frames: int | None = None,
    params: Mapping[str, Any] | None = None,
    dtype: npt.DTypeLike | None = np.float64,
    progress: Progress | None = None,
) -> Trajectories:
    """Samples of a problem, solved in float64 and held in memory as `dtype`.

    With `dtype=None` each sample is solved for when it is read: what a writer of large files needs.

    `resolution` is cells per axis (one number means all axes), `frames` how many frames from the first on
    (the step between frames stays, so more than the problem's own run on past its end). `params` set the
    equation's parameters (a family of initial states is one of them); a number given as a pair (low, high) is drawn
    uniformly for each sample and becomes a parameter of the operator. Sample i is the same whatever `num_samples` is.

    >>> made = generate("darcy2d", num_samples=2, resolution=16)
    >>> made.inputs.shape, made.values.shape
    ((2, 1, 16, 16, 1), (2, 1, 16, 16, 1))
    """
    equation = equation_of(problem)
    if num_samples < 1 or seed < 0:
        raise ConfigError(f"num_samples must be at least 1 and seed at least 0, got {num_samples} and {seed}")
    config = {key: value.item() if isinstance(value, np.generic) else value for key, value in (params or {}).items()}
    origin = {"seed": seed, "params": dict(config)}
    varied = _drawn(equation, config, num_samples, seed)
    parameters = build_settings(equation.parameters, config, where=problem)
    axes = len(equation.resolution)
    cells = (
        (resolution,) * axes if isinstance(resolution, int) else tuple(map(int, resolution or equation.resolution))
    )
    if len(cells) != axes or min(cells) < 4:
        raise ConfigError(f"{equation.name} has {axes} axes of at least 4 cells; got resolution {resolution}")
    times = _times(equation, frames)
    # A parameter may have changed what the ends of the axes do, for all of them.
    boundary = getattr(parameters, "boundary", None)

    def stored(frames: int, channels: int, *, inputs: bool) -> LazyArray:
        shape = (num_samples, frames, *cells, channels)
        source = SolvedArray(equation, parameters, times, seed, varied, shape, inputs, None if inputs else progress)
        return LazyArray.stack([Part(source, tuple(range(len(shape))))])

    lazy = Trajectories(
        values=stored(len(times), len(equation.fields), inputs=False),
        grid=replace(equation.grid(cells), boundary=equation.boundary if boundary is None else (boundary,) * axes),
        times=np.array(times),
        fields=equation.fields,
        inputs=stored(1, len(equation.input_fields), inputs=True) if equation.steady else None,
        input_fields=equation.input_fields,
        params=np.stack(list(varied.values()), axis=1) if varied else None,
        param_names=tuple(varied),
        name=equation.name,
        # The numbers among the parameters that all samples share.
        constants={
            name: float(value)
            for name, value in as_mapping(parameters).items()
            if isinstance(value, float) and name not in varied
        },
        origin=origin,
    )
    return lazy if dtype is None else in_memory(lazy, dtype=dtype)


def in_memory(
    lazy: Trajectories,
    keep: Callable[[Trajectories], Trajectories] = lambda part: part,
    dtype: npt.DTypeLike = np.float64,
) -> Trajectories:
    """Solve a lazy set in pieces, so that memory stays bounded, keeping of each piece what `keep` leaves of it."""
    step = max(1, CHUNK_VALUES // int(np.prod(lazy.values.shape[1:])))
    pieces: list[Trajectories] = []
    for begin in range(0, lazy.num_samples, step):
        kept = keep(lazy.select(slice(begin, begin + step)).with_arrays(np.asarray))
        pieces.append(kept.with_arrays(lambda array: np.asarray(array, dtype)))
    first = pieces[0]
    unchanged, whole = ((each.times.shape, each.fields, each.grid.shape, each.param_names) for each in (first, lazy))
    return replace(
        first,
        values=np.concatenate([piece.values for piece in pieces]),
        inputs=None if lazy.inputs is None else np.concatenate([np.asarray(piece.inputs) for piece in pieces]),
        params=lazy.params if first.param_names else None,
        # Samples that lost frames, fields, cells or parameters cannot be solved anew from their origin.
        origin=lazy.origin if unchanged == whole else {},
    )


def solve(problem: str, initial: Tensor | npt.NDArray[Any], times: Sequence[float], **params: Any) -> Tensor:
    """Solve a problem's equation from `initial` `(B, *space, C)`: `(B, len(times), *space, C)` in float64.

    `initial` holds the problem's fields at time 0, or the input fields of a steady problem; `params` are the
    equation's parameters, and an unknown one raises `ConfigError` naming the nearest.

    >>> medium = torch.ones(1, 16, 16, 1)
    >>> round(float(solve("darcy2d", medium, times=[0.0], beta=2.0).max()), 2)
    0.15
    """
    equation = equation_of(problem)
    parameters = build_settings(equation.parameters, params, where=problem)
    start = torch.as_tensor(initial).to(torch.float64)
    expected = equation.input_fields or equation.fields
    fits = start.ndim == len(equation.bounds) + 2 and start.shape[-1] >= len(expected)
    if not fits or min(start.shape[1:-1]) < 2:
        raise ShapeError(
            f"{problem} starts from (batch, {len(equation.bounds)} axes of 2 cells or more, channels) with channels "
            f"{', '.join(spec.name for spec in expected)}, got shape {tuple(start.shape)}"
        )
    check_times(times)
    if not bool(start.isfinite().all()):
        raise ConfigError(f"{problem} starts from finite numbers, got NaN or infinity in `initial`")
    return equation.solve(start, [float(time) for time in times], parameters)


def _times(equation: Equation, frames: int | None) -> tuple[float, ...]:
    """The first frames of the equation's own clock, which goes on at its last step."""
    own = equation.times
    if frames is None or frames == len(own):
        return own
    if equation.steady or frames < 1:
        reason = "a steady problem has one frame" if equation.steady else "at least one frame is needed"
        raise ConfigError(f"{equation.name}: {reason}, got frames={frames}")
    step = own[-1] - own[-2]
    later = [round(own[-1] + step * number, 12) for number in range(1, frames - len(own) + 1)]
    return (*own[:frames], *later)


def _drawn(
    equation: Equation, config: dict[str, Any], num_samples: int, seed: int
) -> dict[str, npt.NDArray[np.float64]]:
    """Take numbers given as pairs (low, high) out of the config and draw them, `(samples,)` by name."""
    defaults = equation.parameters()
    numbers = {entry.name for entry in fields(defaults) if isinstance(getattr(defaults, entry.name), float)}
    names = [name for name in config if name in numbers and isinstance(config[name], list | tuple)]
    if not names:
        return {}
    # A key of three numbers: the fields of sample i are drawn from (seed, i).
    shares = np.array([np.random.default_rng((seed, sample, 1)).random(len(names)) for sample in range(num_samples)])
    drawn = {}
    for name, share in zip(names, shares.T, strict=True):
        bounds = config.pop(name)
        for bound in bounds:
            build_settings(equation.parameters, {name: bound}, where=equation.name)
        if len(bounds) != 2 or not bounds[0] < bounds[1]:
            raise ConfigError(f"{equation.name}.{name} must be a number or a pair (low, high), got {bounds}")
        low, high = map(float, bounds)
        drawn[name] = low + (high - low) * share
    return drawn


@dataclass(frozen=True, eq=False)
class SolvedArray:
    """One array of a generated set, `(samples, time, *space, channel)` in float64, made when a block is read.

    `varied` `(samples,)` are parameters that differ from sample to sample; `inputs` asks for the drawn fields.
    """

    equation: Equation
    parameters: Any
    times: tuple[float, ...]
    seed: int
    varied: Mapping[str, npt.NDArray[np.float64]]
    shape: tuple[int, ...]
    inputs: bool = False
    progress: Progress | None = None
    dtype: np.dtype[Any] = np.dtype(np.float64)  # noqa: RUF009 - immutable

    def __getitem__(self, block: Block, /) -> npt.NDArray[np.float64]:
        """The samples of the block as one batch where they follow each other, else one by one."""
        samples = range(self.shape[0])[block[0]]
        batches = [samples] if samples.step == 1 else [range(sample, sample + 1) for sample in samples]
        made = torch.cat([self._made(batch) for batch in batches])
        if self.progress is not None:
            self.progress(samples[-1] + 1, self.shape[0])
        return made.numpy()[(slice(None), *block[1:])]

    def _made(self, samples: range) -> Tensor:
        drawn = torch.cat([self._drawn(number) for number in samples])
        if self.inputs:
            return drawn[:, None]
        own = {name: torch.from_numpy(row[samples.start : samples.stop]) for name, row in self.varied.items()}
        solved = self.equation.solve_varied(drawn, self.times, self.parameters, own)
        if not bool(solved.isfinite().all()):
            broken = samples[int((~solved.isfinite()).flatten(1).any(1).nonzero()[0])]
            raise SpectraKANError(
                f"{self.equation.name}: the solution of sample {broken} is not finite; "
                "its parameters or its resolution ask too much of the solver"
            )
        return solved

    def _drawn(self, number: int) -> Tensor:
        """Initial or input fields of one sample, from its own stream of random numbers and its own parameters."""
        own = {name: float(row[number]) for name, row in self.varied.items()}
        # One seed from two numbers, so that streams of different sets do not overlap.
        state = np.random.SeedSequence((self.seed, number)).generate_state(1, np.uint64)
        generator = torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
        return self.equation.sample(1, self.shape[2:-1], replace(self.parameters, **own), generator)
