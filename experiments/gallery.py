"""Figures kept as files, each with a note of what it shows, so that a page can be made without drawing again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from matplotlib.figure import Figure

from spectrakan.config import read_yaml, to_yaml
from spectrakan.errors import DataFormatError
from spectrakan.report.figures import figure_bytes
from spectrakan.report.page import Picture
from spectrakan.storage import write_bytes_atomically, write_text_atomically


@dataclass(frozen=True)
class Plate:
    """What a figure shows: its file's name, the section of a page it belongs to, a caption, and a text for it."""

    name: str
    section: str
    caption: str
    alt: str


def keep_plate(folder: Path, plate: Plate, figure: Figure, formats: Sequence[str] = ("png",)) -> None:
    """Write the figure in each format and its note beside it, which comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in dict.fromkeys(("png", *formats)):
        write_bytes_atomically(folder / f"{plate.name}.{kind}", figure_bytes(figure, kind))
    write_text_atomically(folder / f"{plate.name}.yaml", to_yaml(asdict(plate)))


def read_plates(folder: Path) -> list[tuple[Plate, Picture]]:
    """All figures of a folder that are complete, by name; none where there is no folder."""
    return [_read(note) for note in sorted(folder.glob("*.yaml")) if note.with_suffix(".png").is_file()]


def as_picture(plate: Plate, figure: Figure) -> Picture:
    """A figure for a page."""
    return Picture(figure_bytes(figure), plate.caption, plate.alt)


def _read(note: Path) -> tuple[Plate, Picture]:
    try:
        plate = Plate(**read_yaml(note))
    except TypeError as problem:
        raise DataFormatError(f"'{note}' is not the note of a figure: {problem}; draw the figures again") from None
    return plate, Picture(note.with_suffix(".png").read_bytes(), plate.caption, plate.alt)
