"""Problems: a name, where the trajectories come from, and what is asked of an operator on them.

The paper's six tasks are the literal table `PROBLEMS`. `register_problem` adds a user's own, and so do installed
packages through the entry points `spectrakan.problems`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from spectrakan.data.climate import load_climate
from spectrakan.data.split import SplitSettings
from spectrakan.errors import ConfigError, nearest
from spectrakan.fields import FieldSpec, Trajectories
from spectrakan.pde import cns1d, darcy2d, diffusion_reaction1d, droplet2d, shallow_water2d
from spectrakan.pde.equation import Equation

ENTRY_POINTS = "spectrakan.problems"
LONGEST_HISTORY = 5
"""Most frames that an operator on own data sees unless more are asked for."""


@dataclass(frozen=True)
class Problem:
    """An operator to learn: data plus facts.

    Trajectories come from `equation` (solved), from `load` (a function of a path, or of None where no file is
    named), or from a file that the run names.
    """

    name: str
    fields: tuple[FieldSpec, ...]
    resolution: tuple[int, ...]
    """Cells along each axis by default."""
    frames: int
    """Stored frames of a sample; a steady problem has one."""
    history: int = 1
    """Frames that the operator sees."""
    horizon: int = 1
    """Frames that are predicted and scored, one after the other."""
    summary: str = ""
    input_fields: tuple[FieldSpec, ...] = ()
    """Fields of the input of a steady problem; empty where the input is earlier frames."""
    scored_times: tuple[float, ...] = ()
    """Times of the predicted frames that are scored; empty: all."""
    split: SplitSettings = field(default_factory=SplitSettings)
    anomalies: bool = False
    """Whether departures from the mean field are scored too, because fields hardly leave it."""
    equation: Equation | None = None
    load: Callable[[Path | str | None], Trajectories] | None = None
    held: Trajectories | None = None
    """Trajectories in memory, used where no file is named."""

    @property
    def steady(self) -> bool:
        """Whether input and output are different fields of one instant."""
        return bool(self.input_fields)

    @property
    def space_dims(self) -> int:
        """Number of axes of space."""
        return len(self.resolution)

    @property
    def mapping(self) -> str:
        """The fields as `input -> output`."""
        before, after = (", ".join(spec.name for spec in specs) for specs in (self.input_fields, self.fields))
        return f"{before} -> {after}" if before else after

    @classmethod
    def from_equation(cls, equation: Equation, horizon: int | None = None, **facts: Any) -> Problem:
        """A problem whose samples a solver makes; `horizon` is by default all frames after the history."""
        return cls(
            name=equation.name,
            summary=equation.summary,
            fields=equation.fields,
            resolution=equation.resolution,
            frames=len(equation.times),
            history=equation.history,
            horizon=horizon or max(1, len(equation.times) - equation.history),
            input_fields=equation.input_fields,
            equation=equation,
            **facts,
        )

    @classmethod
    def from_trajectories(cls, data: Trajectories, *, name: str = "", history: int | None = None) -> Problem:
        """The problem that a set of trajectories poses: its facts, with defaults for history and horizon.

        >>> import numpy as np
        >>> data = Trajectories.from_arrays(np.zeros((9, 21, 32, 1)), fields=("u",), name="mine")
        >>> found = Problem.from_trajectories(data)
        >>> found.name, found.history, found.horizon
        ('mine', 5, 16)
        """
        frames = len(data.times)
        seen = history or (1 if data.steady else min(LONGEST_HISTORY, max(1, frames // 4)))
        return cls(
            name=name or data.name or "own_problem",
            summary=data.summary,
            fields=data.fields,
            resolution=data.grid.shape,
            frames=frames,
            history=seen,
            horizon=1 if data.steady else max(1, frames - seen),
            input_fields=data.input_fields,
            held=data,
        )


PROBLEMS: dict[str, Problem] = {
    "cns1d": Problem.from_equation(cns1d.EQUATION, horizon=11),
    "diffusion_reaction1d": Problem.from_equation(diffusion_reaction1d.EQUATION, horizon=96),
    "darcy2d": Problem.from_equation(darcy2d.EQUATION, horizon=1),
    "shallow_water2d": Problem.from_equation(shallow_water2d.EQUATION, horizon=91),
    "droplet2d": Problem.from_equation(droplet2d.EQUATION, horizon=31, scored_times=(0.11, 0.16, 0.21, 0.26, 0.31)),
    "climate2d": Problem(
        name="climate2d",
        summary="weather of one day on the globe: surface air temperature -> surface pressure",
        fields=(FieldSpec("pressure", "hPa", positive=True),),
        resolution=(32, 64),
        frames=1,
        input_fields=(FieldSpec("temperature", "K", positive=True),),
        # As in the paper the later half of the days is the test; weather decorrelates in about ten days.
        split=SplitSettings(train=0.45, validation=0.05, test=0.5, by="sample_order", gap=10),
        anomalies=True,
        load=load_climate,
    ),
}
"""The six tasks of the paper."""

_registered: dict[str, Problem] = {}


def register_problem(problem: Problem | Equation | Trajectories) -> Problem:
    """Make a problem known by its name to `sk.train`, `sk.generate` and the commands of this process.

    An `Equation` or `Trajectories` is made a problem with default facts first. Installed packages register theirs
    by an entry point of the group `spectrakan.problems` that gives a `Problem`, or a function that makes one.
    """
    problem = _as_problem(problem)
    if not problem.name or problem.name in PROBLEMS or problem.name in _registered:
        raise ConfigError(f"a problem called '{problem.name}' exists already; choose another name")
    _registered[problem.name] = problem
    return problem


def problem_named(name: str) -> Problem:
    """The problem of that name; an unknown one raises `ConfigError` with the nearest."""
    known = find_problem(name)
    if known is None:
        raise ConfigError(f"unknown problem '{name}'{nearest(name, all_problems())}")
    return known


def find_problem(name: str) -> Problem | None:
    """The problem of that name, if there is one."""
    if name in PROBLEMS:
        return PROBLEMS[name]
    if name not in _registered:
        _load_entry_points(name)
    return _registered.get(name)


def all_problems() -> dict[str, Problem]:
    """Every known problem: the paper's, registered ones, and those of installed packages."""
    _load_entry_points()
    return {**PROBLEMS, **_registered}


def equation_of(name: str) -> Equation:
    """The equation behind a problem that a solver makes."""
    equation = problem_named(name).equation
    if equation is None:
        solved = [key for key, entry in all_problems().items() if entry.equation]
        raise ConfigError(
            f"'{name}' has no solver, its samples are read from a file; known with one: {', '.join(solved)}"
        )
    return equation


def _load_entry_points(name: str | None = None) -> None:
    for point in entry_points(group=ENTRY_POINTS):
        if point.name in _registered or point.name in PROBLEMS or (name is not None and point.name != name):
            continue
        found = point.load()
        made = found() if callable(found) and not isinstance(found, Equation) else found
        _registered[point.name] = replace(_as_problem(made), name=point.name)


def _as_problem(made: Any) -> Problem:
    if isinstance(made, Equation):
        return Problem.from_equation(made)
    if isinstance(made, Trajectories):
        return Problem.from_trajectories(made)
    if not isinstance(made, Problem):
        raise ConfigError(f"got {type(made).__name__}, expected a Problem, an Equation or Trajectories")
    return made
