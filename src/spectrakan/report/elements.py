"""What stands on a page: paragraphs, lists, tables, pictures and where numbers come from; each as HTML."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from spectrakan.errors import ConfigError

LARGE_PIXELS = 1100
"""Pictures wider than this are not shrunk to the width of a phone, where nobody could read them."""
PIXEL_RATIO = 1.5
"""Pixels of a picture for each of the page, so that it is sharp on fine screens."""


@dataclass(frozen=True)
class Paragraph:
    """Running text; a `note` stands out. In it and in lists `**words**` are strong and words in backticks code."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Listing:
    """Sentences below each other."""

    items: Sequence[str]


@dataclass(frozen=True)
class Picture:
    """A PNG picture, what it shows, and the same in words for those who cannot see it."""

    png: bytes
    caption: str
    alt: str = ""

    def __post_init__(self) -> None:
        if not (self.alt or self.caption).strip():
            raise ConfigError("a picture needs a caption or a text that stands for it")


@dataclass(frozen=True)
class Entry:
    """A cell of a table: its text, the number it is sorted by, and `best`, `second`, `missing` or `words`."""

    text: str
    value: float | None = None
    kind: str = ""


@dataclass(frozen=True)
class DataTable:
    """A table: names of columns, rows of as many entries, and what it shows. It can be sorted in a browser."""

    head: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    caption: str = ""

    def __post_init__(self) -> None:
        if wrong := [row for row in self.rows if len(row) != len(self.head)]:
            raise ConfigError(f"a row needs {len(self.head)} entries, one a column, got {len(wrong[0])}")


@dataclass(frozen=True)
class Origin:
    """Where numbers come from: pairs of a name and a text, folded up; texts in `codes` are for the terminal."""

    summary: str
    facts: Sequence[tuple[str, str]]
    codes: Sequence[str] = ()


Element = Paragraph | Listing | Picture | DataTable | Origin


def as_html(element: Element) -> str:
    """An element as HTML, with all words escaped.

    >>> as_html(Paragraph("a < b"))
    '<p>a &lt; b</p>'
    """
    match element:
        case Paragraph():
            kind = ' class="note"' if element.note else ""
            return f"<p{kind}>{_inline(element.text)}</p>"
        case Listing():
            return f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in element.items)}</ul>"
        case Picture():
            return _picture(element)
        case DataTable():
            return _table(element)
        case Origin():
            return _origin(element)


def _inline(text: str) -> str:
    strong = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", strong)


def _picture(picture: Picture) -> str:
    width, height = png_size(picture.png)
    kind = ' class="large"' if width > LARGE_PIXELS else ""
    size = f'width="{round(width / PIXEL_RATIO)}" height="{round(height / PIXEL_RATIO)}"'
    source = base64.b64encode(picture.png).decode()
    alt = escape(picture.alt or picture.caption)
    image = f'<img{kind} {size} alt="{alt}" src="data:image/png;base64,{source}">'
    # Wider than a phone, so it must be reachable by keyboard to be scrolled.
    plate = f'<div class="plate" tabindex="0" role="group" aria-label="{alt}">{image}</div>'
    return f"<figure>{plate}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _table(table: DataTable) -> str:
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head)
    rows = "".join(f"<tr>{_row(row)}</tr>" for row in table.rows)
    drawn = f'<table class="sortable">{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return (
        f'<div class="wide" tabindex="0" role="group" aria-label="{escape(table.caption or "table")}">{drawn}</div>'
    )


def _row(row: Sequence[Entry]) -> str:
    """The first entry names the row."""
    return "".join(_entry(entry, "td" if place else "th") for place, entry in enumerate(row))


def _entry(entry: Entry, tag: str) -> str:
    kind = f' class="{escape(entry.kind)}"' if entry.kind else ""
    scope = ' scope="row"' if tag == "th" else ""
    value = "" if entry.value is None else f' data-value="{float(entry.value)!r}"'
    return f"<{tag}{scope}{kind}{value}>{escape(entry.text)}</{tag}>"


def _origin(origin: Origin) -> str:
    pairs = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in origin.facts)
    codes = "".join(f"<p><code>{escape(code)}</code></p>" for code in origin.codes)
    return f"<details><summary>{escape(origin.summary)}</summary>{codes}<dl>{pairs}</dl></details>"


def png_size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG picture, from its header."""
    if png[:8] != b"\x89PNG\r\n\x1a\n" or len(png) < 24:
        raise ConfigError("a page holds PNG pictures; this one does not begin as one")
    width, height = struct.unpack(">II", png[16:24])
    return int(width), int(height)
