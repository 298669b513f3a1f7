"""All fields of one sample at one instant: a row a field; input, truth, prediction and error in columns."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import field_label
from spectrakan.report.figures.maps import given_instant, map_layout, upright
from spectrakan.report.figures.panels import draw_rows
from spectrakan.report.figures.sample import Sample
from spectrakan.report.figures.scale import error_scale, field_scale
from spectrakan.report.figures.sheet import Row


def fields_by_row(samples: Sequence[Sample], model: str, time: float) -> Figure:
    """One sample a field, all of one sample; what `model` said at `time`, each row on scales of its own."""
    if not samples or any(len(sample.grid.shape) != 2 for sample in samples):
        raise ShapeError("rows of fields need at least one sample with two axes of space")
    rows = []
    for sample in samples:
        frame = sample.frame(time)
        truth, said, given = sample.truth[frame], sample.predictions[model][frame], sample.given[-1]
        # The input is the same quantity, but a droplet that has just fallen is far higher than its waves.
        before = field_scale(given, [], "input")
        colours = field_scale(truth, [said], "truth, prediction")
        errors = error_scale([said - truth])
        panels = [
            upright(sample, given, before, f"input{given_instant(sample)}"),
            upright(sample, truth, colours, f"truth, t = {sample.times[frame]:.3g}"),
            upright(sample, said, colours, "prediction"),
            upright(sample, said - truth, errors, f"error: RMSE {sample.rmse(model, [frame]):.3g}"),
        ]
        rows.append(Row(panels, [before, colours, errors], field_label(sample.field)))
    return draw_rows(rows, map_layout(samples[0], 1.5))
