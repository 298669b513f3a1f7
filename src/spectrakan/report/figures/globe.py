"""Maps of the globe: longitude to the right, latitude upwards, in degrees."""

from __future__ import annotations

from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import GIVEN, field_label, look_of
from spectrakan.report.figures.panels import BarBelow, draw_rows
from spectrakan.report.figures.sample import Sample, Values
from spectrakan.report.figures.scale import Scale, error_scale, field_scale
from spectrakan.report.figures.sheet import Layout, Panel, Row


def globe_maps(sample: Sample, frame: int = 0) -> Figure:
    """One row a model: input, prediction, truth and error on latitudes and longitudes.

    The scales of the input, of prediction and truth, and of the errors stand below their columns.
    """
    if len(sample.grid.shape) != 2:
        raise ShapeError(f"a globe has latitudes and longitudes, got grid {sample.grid.shape}")
    truth = sample.truth[frame]
    given_field = sample.given_field or sample.field
    given = field_scale(sample.given[-1], [], field_label(given_field), GIVEN)
    said = {name: values[frame] for name, values in sample.predictions.items()}
    colours = field_scale(truth, list(said.values()), field_label(sample.field))
    errors = error_scale([values - truth for values in said.values()], _with_unit("error", sample.field.unit))
    rows = []
    for name, prediction in said.items():
        size = _with_unit(f"error: RMSE {sample.rmse(name, [frame]):.3g}", sample.field.unit, bracket=False)
        panels = [
            _globe(sample, sample.given[-1], given, f"input: {given_field.name}"),
            _globe(sample, prediction, colours, "prediction"),
            _globe(sample, truth, colours, f"truth: {sample.field.name}"),
            _globe(sample, prediction - truth, errors, size),
        ]
        rows.append(Row(panels, name=look_of(name).label))
    layout = Layout(2.1, 1.05, "longitude (°E)", "latitude (°N)", (0, 90, 180, 270), (-60, 0, 60))
    return draw_rows(rows, layout, [BarBelow(given, 0, 0), BarBelow(colours, 1, 2), BarBelow(errors, 3, 3)])


def _globe(sample: Sample, values: Values, scale: Scale, title: str) -> Panel:
    return Panel(values, scale, title, sample.grid.edges[1].numpy(), sample.grid.edges[0].numpy())


def _with_unit(text: str, unit: str, *, bracket: bool = True) -> str:
    if not unit:
        return text
    return f"{text} ({unit})" if bracket else f"{text} {unit}"
