"""Figures as bytes and files: PNG for pages, SVG and PDF for papers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from spectrakan.errors import ConfigError
from spectrakan.report.figures.appearance import house_type
from spectrakan.storage import write_bytes_atomically

FORMATS = ("png", "svg", "pdf")
DOTS_PER_INCH = 150
# Without dates and versions, and with fixed names inside, so that the same numbers give the same bytes.
_SILENT: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def figure_bytes(figure: Figure, kind: str = "png", dots_per_inch: int = DOTS_PER_INCH) -> bytes:
    """The figure as a PNG, SVG or PDF file; text stays text in the latter two, maps are pictures in them."""
    if kind not in FORMATS:
        raise ConfigError(f"figures are written as {', '.join(FORMATS)}, got '{kind}'")
    buffer = io.BytesIO()
    own: Any = {"svg.fonttype": "none", "svg.hashsalt": "spectrakan", "pdf.fonttype": 42}
    # Ticks are made while a figure is written, so the type must hold here as well.
    with house_type(), matplotlib.rc_context(own):
        figure.savefig(buffer, format=kind, dpi=dots_per_inch, metadata=_SILENT[kind])
    return buffer.getvalue()


def save_figure(figure: Figure, path: Path | str) -> None:
    """Write a figure in the format that the file's name says, in one step."""
    place = Path(path)
    write_bytes_atomically(place, figure_bytes(figure, place.suffix.removeprefix(".").lower()))
