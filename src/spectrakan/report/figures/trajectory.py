"""One sample of a data set: a 1D field over space and time, or maps of a 2D field at several times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from spectrakan.errors import ConfigError, ShapeError, nearest
from spectrakan.fields import FieldSpec, Trajectories
from spectrakan.report.figures.appearance import GIVEN, field_label
from spectrakan.report.figures.maps import frame_edges, map_layout, upright
from spectrakan.report.figures.sample import Values, field_scale
from spectrakan.report.figures.sheet import Layout, Panel, Row, balanced, draw_rows

COLUMNS = 6


def trajectory_figure(
    data: Trajectories, sample: int = 0, fields: Sequence[str] = (), frames: int | Sequence[int] = COLUMNS
) -> Figure:
    """One sample of a data set, one row a field (all by default).

    In 1D each field is a map over space (to the right) and time (upwards). In 2D each row shows `frames` frames,
    evenly spaced or as listed, on one colour scale. A steady problem shows its inputs, then its solution.

    >>> from spectrakan.fields import Grid
    >>> values = np.random.default_rng(0).random((3, 5, 8, 8, 1))
    >>> data = Trajectories(values, Grid.uniform((8, 8)), np.arange(5.0), (FieldSpec("heat"),))
    >>> len([axes for axes in trajectory_figure(data, sample=1, frames=[0, 4]).axes if axes.get_title()])
    2
    """
    if not 0 <= sample < data.num_samples:
        raise ConfigError(f"there is no sample {sample}; the data have {data.num_samples}, counted from 0")
    if len(data.grid.shape) > 2:
        raise ShapeError(f"samples with one or two axes of space can be drawn, got grid {data.grid.shape}")
    values = np.asarray(data.values[sample], dtype=np.float64)
    chosen = _indices(data.fields, fields)
    if len(data.grid.shape) == 1:
        return _space_time(data, values, chosen)
    layout = map_layout(data.grid)
    scales = {index: field_scale(values[..., index], [], field_label(data.fields[index])) for index in chosen}
    if data.inputs is not None:
        given = np.asarray(data.inputs[sample][0], dtype=np.float64)
        panels = []
        for index, spec in enumerate(data.input_fields):
            scale = field_scale(given[..., index], [], field_label(spec), GIVEN)
            panels.append(upright(data.grid, given[..., index], scale, spec.name))
        panels += [upright(data.grid, values[0, ..., i], scales[i], data.fields[i].name) for i in chosen]
        return draw_rows([Row(panels, [panel.scale for panel in panels])], layout)
    numbers = _frames(frames, len(data.times))
    columns = balanced(len(numbers), COLUMNS)
    rows = []
    for index, scale in scales.items():
        maps = [upright(data.grid, values[n, ..., index], scale, f"t = {data.times[n]:.3g}") for n in numbers]
        rows += [Row(maps[first : first + columns], [scale]) for first in range(0, len(maps), columns)]
    return draw_rows(rows, layout)


def _space_time(data: Trajectories, values: Values, chosen: Sequence[int]) -> Figure:
    if len(data.times) < 2:
        raise ShapeError("a map over space and time needs at least two frames, got 1")
    across, up = data.grid.edges[0].numpy(), frame_edges([float(time) for time in data.times])
    rows = []
    for index in chosen:
        scale = field_scale(values[..., index], [], field_label(data.fields[index]))
        rows.append(Row([Panel(values[..., index], scale, data.fields[index].name, across, up)], [scale]))
    return draw_rows(rows, Layout(3.2, 1.6, "x", "t"))


def _indices(specs: Sequence[FieldSpec], names: Sequence[str]) -> list[int]:
    known = [spec.name for spec in specs]
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"there is no field '{unknown[0]}'{nearest(unknown[0], known)}; known: {', '.join(known)}")
    return [known.index(name) for name in names] or list(range(len(known)))


def _frames(frames: int | Sequence[int], count: int) -> list[int]:
    if isinstance(frames, int):
        return sorted({round(float(index)) for index in np.linspace(0, count - 1, max(1, min(frames, count)))})
    if not frames or any(not -count <= index < count for index in frames):
        raise ConfigError(f"frames must be indices below {count}, at least one, got {list(frames)}")
    return [index % count for index in frames]
