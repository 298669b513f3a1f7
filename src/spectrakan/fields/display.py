"""How a set of trajectories looks in a notebook: a table of its facts, and a picture of one sample."""

from __future__ import annotations

import html
import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spectrakan.errors import ConfigError, nearest

if TYPE_CHECKING:
    from spectrakan.fields.trajectories import Trajectories

MOST_MAPS = 5
"""Frames that are drawn of a field on two axes."""


def facts(data: Trajectories) -> dict[str, str]:
    """What a set is, line by line; what it does not have is left out."""
    rows = {
        "problem": data.name or "unknown",
        "samples": str(data.num_samples),
        "fields": ", ".join(f"{spec.name} [{spec.unit}]" if spec.unit else spec.name for spec in data.fields),
        "input fields": ", ".join(spec.name for spec in data.input_fields),
        "cells": " x ".join(str(size) for size in data.grid.shape),
        "domain": " x ".join(f"[{low:g}, {high:g}]" for low, high in data.grid.bounds),
        "boundary": ", ".join(data.grid.boundary),
        "frames": "" if data.steady else f"{len(data.times)}, from t = {data.times[0]:g} to {data.times[-1]:g}",
        "parameters": ", ".join(data.param_names),
        "constants": ", ".join(f"{name} {value:g}" for name, value in data.constants.items()),
        "numbers": f"{data.values.dtype}, {math.prod(data.values.shape) * data.values.dtype.itemsize / 1e6:.3g} MB",
    }
    return {name: text for name, text in rows.items() if text}


def as_html(data: Trajectories) -> str:
    """The facts of a set as an HTML table."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in facts(data).items()
    )
    return f"<table><caption>Trajectories <b>{html.escape(data.name or 'unnamed')}</b></caption>{cells}</table>"


def draw_sample(data: Trajectories, sample: int, field: str | int) -> Any:
    """A figure of one field: lines in 1D for a steady field, space and time in 1D, maps in 2D."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A figure that notebooks display without pyplot."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    names = [spec.name for spec in data.fields]
    if field not in (*names, *range(-len(names), len(names))):
        raise ConfigError(f"no field '{field}'{nearest(str(field), names)}")
    channel = field if isinstance(field, int) else names.index(field)
    frames = np.asarray(data.values[sample])[..., channel]
    spec = data.fields[channel]
    label = f"{spec.name} [{spec.unit}]" if spec.unit else spec.name
    if frames.ndim == 2:
        figure = NotebookFigure(figsize=(5, 3.5), layout="constrained")
        axes, centres = figure.subplots(), data.grid.coordinates[0].numpy()
        if len(frames) == 1:
            axes.plot(centres, frames[0])
        else:
            figure.colorbar(axes.pcolormesh(centres, data.times, frames, shading="nearest"), ax=axes, label=label)
        axes.set(xlabel="x", ylabel=label if len(frames) == 1 else "t")
        return figure
    if frames.ndim == 4:
        frames = frames[..., frames.shape[-1] // 2]  # the middle plane of the third axis
    chosen = np.unique(np.linspace(0, len(frames) - 1, min(MOST_MAPS, len(frames))).round().astype(int))
    globe = data.grid.boundary == ("wall", "periodic") and abs(data.grid.extent[1] - 360) < 1
    across, up = (1, 0) if globe else (0, 1)  # latitude is the first axis of a globe
    figure = NotebookFigure(figsize=((4.8 if globe else 2.4) * len(chosen) + 0.8, 2.6), layout="constrained")
    panels = figure.subplots(1, len(chosen), squeeze=False)[0]
    shown = frames[chosen]
    extent = (*data.grid.bounds[across], *data.grid.bounds[up])
    limits = {"vmin": shown.min(), "vmax": shown.max()}
    for panel, frame, index in zip(panels, shown, chosen, strict=True):
        image = panel.imshow(frame if globe else frame.T, origin="lower", extent=extent, aspect="auto", **limits)
        panel.set_title("" if data.steady else f"t = {data.times[index]:g}")
        panel.set_xlabel("longitude" if globe else "x")
        panel.set_ylabel("" if index != chosen[0] else "latitude" if globe else "y")
    figure.colorbar(image, ax=list(panels), label=label)
    return figure
