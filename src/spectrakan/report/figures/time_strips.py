"""One sample at several instants, for a few models against each other: time to the right, models downwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import field_label, look_of
from spectrakan.report.figures.maps import given_instant, given_scale, map_layout, upright
from spectrakan.report.figures.panels import draw_rows
from spectrakan.report.figures.sample import Sample
from spectrakan.report.figures.scale import error_scale, field_scale
from spectrakan.report.figures.sheet import Row


def time_strips(sample: Sample, times: Sequence[float], models: Sequence[str] = ()) -> Figure:
    """Truth at each of `times`, and below it prediction and error of each of `models` (all by default).

    The column at the far left is the input. Fields share one scale through all times, errors another.
    """
    if len(sample.grid.shape) != 2:
        raise ShapeError(f"strips of maps need two axes of space, got grid {sample.grid.shape}")
    shown = sample.only(models) if models else sample
    frames = [shown.frame(time) for time in times]
    said = {name: values[frames] for name, values in shown.predictions.items()}
    colours = field_scale(shown.truth[frames], list(said.values()), field_label(shown.field))
    wrong = {name: shown.error(name)[frames] for name in shown.predictions}
    errors = error_scale(list(wrong.values()))
    given = given_scale(shown)
    first = upright(shown, shown.given[-1], given, f"input{given_instant(shown)}")
    titles = [f"truth, t = {shown.times[frame]:.3g}" for frame in frames]
    truth = [
        upright(shown, np.asarray(shown.truth[f]), colours, title) for f, title in zip(frames, titles, strict=True)
    ]
    rows = [Row([first, *truth], [colours, given])]
    for name in shown.predictions:
        label = look_of(name).label
        predictions = [upright(shown, values, colours) for values in said[name]]
        differences = [
            upright(shown, values, errors, f"RMSE {shown.rmse(name, [frame]):.3g}")
            for values, frame in zip(wrong[name], frames, strict=True)
        ]
        rows.append(Row([label, *predictions], [colours]))
        rows.append(Row(["error of\n" + label, *differences], [errors]))
    return draw_rows(rows, map_layout(shown, 1.4))
