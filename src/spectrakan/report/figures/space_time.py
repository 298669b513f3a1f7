"""Space-time maps of one-dimensional solutions: x to the right, time upwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.appearance import field_label, look_of
from spectrakan.report.figures.blocks import Block, balanced, block_rows
from spectrakan.report.figures.panels import draw_rows
from spectrakan.report.figures.sample import Sample
from spectrakan.report.figures.scale import error_scale, field_scale
from spectrakan.report.figures.sheet import Edges, Layout, Panel


def space_time_maps(sample: Sample, most_columns: int = 5) -> Figure:
    """Truth and input, then prediction and error of each model, as maps over space and time.

    The error in a title is the RMSE over all frames shown.
    """
    if len(sample.grid.shape) != 1 or len(sample.times) < 2 or len(sample.given_times) < 1:
        raise ShapeError(
            f"space-time maps need one axis of space, two frames and times of the input, "
            f"got grid {sample.grid.shape} and {len(sample.times)} frames"
        )
    label = field_label(sample.field)
    colours = field_scale(np.concatenate([sample.given, sample.truth]), list(sample.predictions.values()), label)
    errors = error_scale([sample.error(name) for name in sample.predictions])
    across, up = sample.grid.edges[0].numpy(), frame_edges(sample.times)
    step = float(sample.times[1] - sample.times[0])
    before = frame_edges(sample.given_times, step)
    blocks = [
        Block(
            Panel(sample.truth, colours, "truth", across, up),
            Panel(sample.given, colours, "input", across, before),
        )
    ]
    for name, said in sample.predictions.items():
        title = f"{look_of(name).label}\nRMSE {sample.rmse(name):.3g}"
        blocks.append(
            Block(Panel(said, colours, title, across, up), Panel(sample.error(name), errors, "error", across, up))
        )
    layout = Layout(1.5, 1.15, "x", "t")
    return draw_rows(block_rows(blocks, balanced(len(blocks), most_columns)), layout)


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
