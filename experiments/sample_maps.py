"""Maps of truth, predictions and errors of a sample: 2D fields at one time, 1D fields over space and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from experiments.sheet import Edges, Layout, Panel, balanced, draw_rows, pair_rows
from spectrakan.errors import ShapeError
from spectrakan.fields import FieldSpec, Grid
from spectrakan.report.figures.appearance import GIVEN, field_label, look_of
from spectrakan.report.figures.maps import ColourScale, Values, error_scale, field_scale

WIDTH, MOST_COLUMNS = 1.45, 5


@dataclass(frozen=True, eq=False)
class Sample:
    """Input, truth and predictions of one field, in physical units.

    `truth` and each of `predictions` `(time, *space)` at `times`; `given` `(history, *space)`, of the field
    `given_field` (a steady task's input) or, where that is None, earlier frames of `field` at `given_times`.
    """

    field: FieldSpec
    grid: Grid
    times: Sequence[float]
    truth: Values
    predictions: Mapping[str, Values]
    given: Values
    given_times: Sequence[float] = ()
    given_field: FieldSpec | None = None

    def __post_init__(self) -> None:
        expected = (len(self.times), *self.grid.shape)
        for name, values in {"truth": self.truth, **self.predictions}.items():
            if values.shape != expected:
                raise ShapeError(f"{name} must have shape {expected} = (time, *space), got {values.shape}")
        if self.given.shape[1:] != self.grid.shape or (self.given_times and len(self.given_times) != len(self.given)):
            raise ShapeError(
                f"given must have shape ({len(self.given_times) or 'history'}, *{self.grid.shape}), "
                f"got {self.given.shape}"
            )

    @property
    def steady(self) -> bool:
        """Whether the input is another field."""
        return self.given_field is not None

    def error(self, model: str) -> Values:
        """Prediction minus truth `(time, *space)`."""
        return np.asarray(self.predictions[model], dtype=np.float64) - self.truth

    def rmse(self, model: str, frames: int | slice | Sequence[int] = slice(None)) -> float:
        """Root of the mean square error over the frames shown and the domain, cells weighted by volume."""
        squares = np.square(self.error(model)[frames]).reshape(-1, *self.grid.shape).mean(axis=0)
        return float(np.sqrt(np.sum(squares * self.grid.volumes().numpy())))


def instant_maps(sample: Sample, frame: int = -1) -> Figure:
    """Truth and input, then prediction and error of each model, at one frame.

    All predictions and the truth share one colour scale, all errors another. The input has its own: it is another
    field, or an earlier frame with another range. The error in a title is the RMSE at this frame.
    """
    if len(sample.grid.shape) != 2:
        raise ShapeError(f"maps need two axes of space, got grid {sample.grid.shape}")

    instant = "" if sample.steady else f", t = {sample.times[frame]:.3g}"
    shown = [values[frame] for values in sample.predictions.values()]
    colours = field_scale(sample.truth[frame], shown, field_label(sample.field))
    panel = partial(upright, sample.grid)
    given = panel(sample.given[-1], given_scale(sample), f"input{given_instant(sample)}")
    first = (panel(sample.truth[frame], colours, f"truth{instant}"), given)
    return _sheet(sample, first, panel, map_layout(sample.grid), frame)


def space_time_maps(sample: Sample) -> Figure:
    """Truth and input, then prediction and error of each model, as maps over space and time.

    The error in a title is the RMSE over all frames shown.
    """
    if len(sample.grid.shape) != 1 or len(sample.times) < 2 or len(sample.given_times) < 1:
        raise ShapeError(
            f"space-time maps need one axis of space, two frames and times of the input, "
            f"got grid {sample.grid.shape} and {len(sample.times)} frames"
        )
    across, up = sample.grid.edges[0].numpy(), frame_edges(sample.times)

    def panel(values: Values, scale: ColourScale, title: str) -> Panel:
        return Panel(values, scale, title, across, up)

    shown = np.concatenate([sample.given, sample.truth])
    colours = field_scale(shown, list(sample.predictions.values()), field_label(sample.field))
    before = frame_edges(sample.given_times, float(sample.times[1] - sample.times[0]))
    first = (panel(sample.truth, colours, "truth"), Panel(sample.given, colours, "input", across, before))
    return _sheet(sample, first, panel, Layout(1.5, 1.15, "x", "t"), slice(None))


def _sheet(
    sample: Sample,
    first: tuple[Panel, Panel],
    panel: Callable[[Values, ColourScale, str], Panel],
    layout: Layout,
    frames: int | slice,
) -> Figure:
    """A pair, then prediction and error of each model on the colours of the first; all errors share one scale."""
    wrong = {name: sample.error(name)[frames] for name in sample.predictions}
    errors, pairs = error_scale(list(wrong.values())), [first]
    for name, values in sample.predictions.items():
        title = f"{look_of(name).label}\nRMSE {sample.rmse(name, frames):.3g}"
        pairs.append((panel(values[frames], first[0].scale, title), panel(wrong[name], errors, "error")))
    return draw_rows(pair_rows(pairs, balanced(len(pairs), MOST_COLUMNS)), layout)


def upright(grid: Grid, values: Values, scale: ColourScale, title: str = "") -> Panel:
    """A panel of a field `(nx, ny)`, x to the right, or `(latitudes, longitudes)`, longitudes to the right."""
    first, second = (edge.numpy() for edge in grid.edges)
    return (
        Panel(values, scale, title, second, first) if on_globe(grid) else Panel(values.T, scale, title, first, second)
    )


def on_globe(grid: Grid) -> bool:
    """Whether the axes are latitudes and longitudes: cells then have the area of a sphere's."""
    if len(grid.shape) != 2 or tuple(grid.boundary) != ("wall", "periodic"):
        return False
    area = np.diff(np.sin(np.deg2rad(grid.edges[0].numpy())))
    return bool(np.allclose(grid.weights[0].numpy(), area / area.sum(), rtol=1e-6))


def given_scale(sample: Sample) -> ColourScale:
    """The colours of the last input frame."""
    if sample.given_field is None:
        return field_scale(sample.given[-1], [], f"input {field_label(sample.field)}")
    return field_scale(sample.given[-1], [], field_label(sample.given_field), GIVEN)


def map_layout(grid: Grid, width: float = WIDTH) -> Layout:
    """Maps in the proportions of the domain."""
    if on_globe(grid):
        size = 1.45 * width
        return Layout(size, size / 2, "longitude (°E)", "latitude (°N)", (0, 90, 180, 270), (-60, 0, 60))
    across, up = grid.extent
    return Layout(width, width * float(np.clip(up / across, 0.4, 2.5)), "x", "y")


def given_instant(sample: Sample) -> str:
    """The time of the last input frame after a comma, or nothing where it is not known."""
    return f", t = {sample.given_times[-1]:.3g}" if sample.given_times else ""


def frame_edges(times: Sequence[float], step: float = 1.0) -> Edges:
    """Half-way between the frames, and half a step before the first and after the last.

    >>> frame_edges([0.0, 0.5, 1.0]).tolist()
    [-0.25, 0.25, 0.75, 1.25]
    """
    instants = np.asarray(times, dtype=np.float64)
    if len(instants) == 1:
        return np.array([instants[0] - step / 2, instants[0] + step / 2])
    inner = (instants[1:] + instants[:-1]) / 2
    first, last = instants[0] - (inner[0] - instants[0]), instants[-1] + (instants[-1] - inner[-1])
    return np.concatenate([[first], inner, [last]])
