"""Maps of the paper's page: all fields at one time, the globe, and a few models in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from experiments.sample_maps import Sample, given_instant, given_scale, map_layout, on_globe, upright
from experiments.sheet import Row, draw_rows
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.report.figures.appearance import GIVEN, field_label, look_of
from spectrakan.report.figures.maps import error_scale, field_scale


def fields_by_row(samples: Sequence[Sample], model: str, time: float) -> Figure:
    """One sample a field, all of one sample; what `model` predicted at `time`, each row on scales of its own."""
    if not samples or any(len(sample.grid.shape) != 2 for sample in samples):
        raise ShapeError("rows of fields need at least one sample with two axes of space")
    rows = []
    for sample in samples:
        frame = frame_at(sample, time)
        truth, predicted, given = sample.truth[frame], sample.predictions[model][frame], sample.given[-1]
        # The input is the same quantity, but a droplet that has just fallen is far higher than its waves.
        before = field_scale(given, [], "input")
        colours = field_scale(truth, [predicted], "truth, prediction")
        errors = error_scale([predicted - truth])
        panels = [
            upright(sample.grid, given, before, f"input{given_instant(sample)}"),
            upright(sample.grid, truth, colours, f"truth, t = {sample.times[frame]:.3g}"),
            upright(sample.grid, predicted, colours, "prediction"),
            upright(sample.grid, predicted - truth, errors, f"error: RMSE {sample.rmse(model, [frame]):.3g}"),
        ]
        rows.append(Row(panels, [before, colours, errors], field_label(sample.field)))
    return draw_rows(rows, map_layout(samples[0].grid, 1.5))


def time_strips(sample: Sample, times: Sequence[float], models: Sequence[str] = ()) -> Figure:
    """Truth at each of `times`, and below it prediction and error of each of `models` (all by default).

    The column at the far left is the input. Fields share one scale through all times, errors another.
    """
    if len(sample.grid.shape) != 2:
        raise ShapeError(f"strips of maps need two axes of space, got grid {sample.grid.shape}")
    shown = with_models(sample, models) if models else sample
    frames = [frame_at(shown, time) for time in times]
    predicted = {name: values[frames] for name, values in shown.predictions.items()}
    colours = field_scale(shown.truth[frames], list(predicted.values()), field_label(shown.field))
    wrong = {name: shown.error(name)[frames] for name in shown.predictions}
    errors = error_scale(list(wrong.values()))
    given = given_scale(shown)
    first = upright(shown.grid, shown.given[-1], given, f"input{given_instant(shown)}")
    titles = [f"truth, t = {shown.times[frame]:.3g}" for frame in frames]
    truth = [
        upright(shown.grid, np.asarray(shown.truth[f]), colours, title)
        for f, title in zip(frames, titles, strict=True)
    ]
    rows = [Row([first, *truth], [colours, given])]
    for name in shown.predictions:
        label = look_of(name).label
        predictions = [upright(shown.grid, values, colours) for values in predicted[name]]
        differences = [
            upright(shown.grid, values, errors, f"RMSE {shown.rmse(name, [frame]):.3g}")
            for values, frame in zip(wrong[name], frames, strict=True)
        ]
        rows.append(Row([label, *predictions], [colours]))
        rows.append(Row(["error of\n" + label, *differences], [errors]))
    return draw_rows(rows, map_layout(shown.grid, 1.4))


def globe_maps(sample: Sample, frame: int = 0) -> Figure:
    """One row a model: input, prediction, truth and error on latitudes and longitudes."""
    if not on_globe(sample.grid):
        raise ShapeError(f"a globe has latitudes and longitudes, got grid {sample.grid.shape}")
    truth = sample.truth[frame]
    given_field, unit = sample.given_field or sample.field, sample.field.unit
    given = field_scale(sample.given[-1], [], field_label(given_field), GIVEN)
    predictions = {name: values[frame] for name, values in sample.predictions.items()}
    colours = field_scale(truth, list(predictions.values()), field_label(sample.field))
    errors = error_scale([values - truth for values in predictions.values()], f"error ({unit})" if unit else "error")
    rows = []
    for name, predicted in predictions.items():
        title = f"error: RMSE {sample.rmse(name, [frame]):.3g} {unit}".rstrip()
        panels = [
            upright(sample.grid, sample.given[-1], given, f"input: {given_field.name}"),
            upright(sample.grid, predicted, colours, "prediction"),
            upright(sample.grid, truth, colours, f"truth: {sample.field.name}"),
            upright(sample.grid, predicted - truth, errors, title),
        ]
        rows.append(Row(panels, [given, colours, errors], look_of(name).label))
    return draw_rows(rows, map_layout(sample.grid))


def frame_at(sample: Sample, time: float) -> int:
    """The index of a time among the times of a sample; one that is not there raises `ConfigError`."""
    index = int(np.argmin([abs(each - time) for each in sample.times]))
    if abs(sample.times[index] - time) > 1e-6:
        raise ConfigError(f"there is no frame at t = {time:g}; known: {', '.join(f'{t:g}' for t in sample.times)}")
    return index


def with_models(sample: Sample, models: Sequence[str]) -> Sample:
    """The same sample with these models only, in this order."""
    if unknown := [name for name in models if name not in sample.predictions]:
        raise ConfigError(f"no prediction of {', '.join(unknown)}; known: {', '.join(sample.predictions)}")
    return replace(sample, predictions={name: sample.predictions[name] for name in models})
