"""Maps of two-dimensional fields at one instant: x to the right, y upwards."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import GIVEN, field_label, look_of
from spectrakan.report.figures.blocks import Block, balanced, block_rows
from spectrakan.report.figures.panels import draw_rows
from spectrakan.report.figures.sample import Sample, Values
from spectrakan.report.figures.scale import Scale, error_scale, field_scale
from spectrakan.report.figures.sheet import Layout, Panel

WIDTH = 1.45


def field_maps(sample: Sample, frame: int = -1, most_columns: int = 5) -> Figure:
    """Truth and input, then prediction and error of each model, at one frame.

    A steady task's input has a scale of its own, and so has an earlier frame of the field, whose range may be
    another one. The error in a title is the RMSE at this frame.
    """
    if len(sample.grid.shape) != 2:
        raise ShapeError(f"maps need two axes of space, got grid {sample.grid.shape}")
    truth = sample.truth[frame]
    predictions = {name: values[frame] for name, values in sample.predictions.items()}
    colours = field_scale(truth, list(predictions.values()), field_label(sample.field))
    errors = error_scale([values - truth for values in predictions.values()])
    blocks = [
        Block(
            upright(sample, truth, colours, f"truth{instant(sample, frame)}"),
            upright(sample, sample.given[-1], given_scale(sample), f"input{given_instant(sample)}"),
        )
    ]
    for name, said in predictions.items():
        title = f"{look_of(name).label}\nRMSE {sample.rmse(name, [frame]):.3g}"
        blocks.append(Block(upright(sample, said, colours, title), upright(sample, said - truth, errors, "error")))
    return draw_rows(block_rows(blocks, balanced(len(blocks), most_columns)), map_layout(sample))


def upright(sample: Sample, values: Values, scale: Scale, title: str = "") -> Panel:
    """A panel of a field `(nx, ny)`: the first axis of an array is x, to the right."""
    return Panel(values.T, scale, title, sample.grid.edges[0].numpy(), sample.grid.edges[1].numpy())


def given_scale(sample: Sample) -> Scale:
    """The colours of the last input frame."""
    if sample.given_field is None:
        return field_scale(sample.given[-1], [], f"input {field_label(sample.field)}")
    return field_scale(sample.given[-1], [], field_label(sample.given_field), GIVEN)


def map_layout(sample: Sample, width: float = WIDTH) -> Layout:
    """Maps in the proportions of the domain."""
    across, up = sample.grid.extent
    return Layout(width, width * float(np.clip(up / across, 0.4, 2.5)), "x", "y")


def instant(sample: Sample, frame: int) -> str:
    """The time of a frame after a comma, or nothing for a steady task."""
    return "" if sample.steady else f", t = {sample.times[frame]:.3g}"


def given_instant(sample: Sample) -> str:
    """The time of the last input frame after a comma, or nothing where it is not known."""
    return f", t = {sample.given_times[-1]:.3g}" if sample.given_times else ""
