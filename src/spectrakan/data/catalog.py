"""The tasks of the paper: what is mapped to what, on which grid, and how samples are shared out."""

from __future__ import annotations

from dataclasses import dataclass, field

from spectrakan.data.split import SplitSettings
from spectrakan.errors import ConfigError, nearest
from spectrakan.fields import FieldSpec
from spectrakan.pde.catalog import EQUATIONS
from spectrakan.pde.equation import Equation


@dataclass(frozen=True)
class Task:
    """An operator to learn. Physics comes from its equation; what is chosen for learning stands here."""

    name: str
    summary: str
    fields: tuple[FieldSpec, ...]
    resolution: tuple[int, ...]
    """Cells per axis by default."""
    frames: int
    """Stored frames of a sample; a steady task has one."""
    history: int
    """Frames that the operator sees."""
    horizon: int
    """Frames that are predicted and scored, one after the other."""
    input_fields: tuple[FieldSpec, ...] = ()
    """Fields of the input of a steady task; empty where the input is earlier frames."""
    scored_times: tuple[float, ...] = ()
    """Times of the predicted frames that the paper scores; empty where it scores all."""
    split: SplitSettings = field(default_factory=SplitSettings)
    anomalies: bool = False
    """Whether fields hardly leave their mean, so that departures from it are scored too."""
    equation: Equation | None = None
    """The equation whose solver makes samples; None where they are read from a file."""

    @property
    def steady(self) -> bool:
        """Whether input and output are different fields of one instant."""
        return bool(self.input_fields)

    @property
    def mapping(self) -> str:
        """The fields as `input -> output`."""
        before, after = (", ".join(spec.name for spec in specs) for specs in (self.input_fields, self.fields))
        return f"{before} -> {after}" if before else after


def _solved(equation: Equation, horizon: int, scored_times: tuple[float, ...] = ()) -> Task:
    """A task whose samples a solver makes."""
    return Task(
        name=equation.name,
        summary=equation.summary,
        fields=equation.fields,
        resolution=equation.resolution,
        frames=len(equation.times),
        history=equation.history,
        horizon=horizon,
        input_fields=equation.input_fields,
        scored_times=scored_times,
        equation=equation,
    )


TASKS: dict[str, Task] = {
    "cns1d": _solved(EQUATIONS["cns1d"], horizon=11),
    "diffusion_reaction1d": _solved(EQUATIONS["diffusion_reaction1d"], horizon=96),
    "darcy2d": _solved(EQUATIONS["darcy2d"], horizon=1),
    "shallow_water2d": _solved(EQUATIONS["shallow_water2d"], horizon=91),
    "droplet2d": _solved(EQUATIONS["droplet2d"], horizon=31, scored_times=(0.11, 0.16, 0.21, 0.26, 0.31)),
    "climate2d": Task(
        name="climate2d",
        summary="weather of one day on the globe: surface air temperature -> surface pressure",
        fields=(FieldSpec("pressure", "hPa", positive=True),),
        resolution=(32, 64),
        frames=1,
        history=1,
        horizon=1,
        input_fields=(FieldSpec("temperature", "K", positive=True),),
        # As in the paper the later half of the days is the test; weather forgets itself in about ten days.
        split=SplitSettings(train=0.45, validation=0.05, test=0.5, time_ordered=True, gap=10),
        anomalies=True,
    ),
}


def task(name: str) -> Task:
    """The task of that name; an unknown one raises `ConfigError` with the nearest."""
    if name not in TASKS:
        raise ConfigError(f"unknown task '{name}'{nearest(name, TASKS)}")
    return TASKS[name]


def equation_of(name: str) -> Equation:
    """The equation behind a task that a solver makes."""
    equation = task(name).equation
    if equation is None:
        raise ConfigError(
            f"'{name}' has no solver, its samples are read from a file; "
            f"known with one: {', '.join(key for key, entry in TASKS.items() if entry.equation)}"
        )
    return equation
