"""One self-contained HTML page of texts, tables, pictures and folded details, in sections."""

import base64
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby

from spectrakan.errors import ConfigError
from spectrakan.report.table import Score, Table, score_text

LARGE_PIXELS = 1100
"""Pictures wider than this are not shrunk to the width of a phone, where they would be too small to read."""
PIXEL_RATIO = 1.5
"""Pixels of a picture for each of the page, so that it is sharp on fine screens."""


@dataclass(frozen=True)
class Paragraph:
    """Running text, one paragraph a line; a `note` is highlighted.

    Lines that begin with a dash are a list. `**words**` are strong, words in backticks code.
    """

    text: str
    note: bool = False


@dataclass(frozen=True)
class Picture:
    """A PNG picture, its caption, and a text for readers who cannot see it."""

    png: bytes
    caption: str
    alt: str = ""

    def __post_init__(self) -> None:
        if not (self.alt or self.caption).strip():
            raise ConfigError("a picture needs a caption or an alternative text")


@dataclass(frozen=True)
class Origin:
    """Details such as provenance, folded: pairs of a name and a text; `codes` are commands for the terminal."""

    summary: str
    entries: Sequence[tuple[str, str]]
    codes: Sequence[str] = ()


Element = Paragraph | Picture | Table | Origin


@dataclass(frozen=True)
class Section:
    """A part of a page under its own title; the navigation shows `short` if given."""

    title: str
    elements: Sequence[Element]
    short: str = ""

    @property
    def anchor(self) -> str:
        """What a link to the section ends with.

        >>> Section("Main table: RMSE", []).anchor
        'main-table-rmse'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-") or "section"


def page(title: str, lead: Sequence[Element], sections: Sequence[Section], footer: str = "") -> str:
    """The page as text: title, `lead`, navigation, sections. All words are escaped.

    >>> "a &lt;b&gt;" in page("a <b>", [], [])
    True
    """
    anchors = [section.anchor for section in sections]
    if twice := {anchor for anchor in anchors if anchors.count(anchor) > 1}:
        raise ConfigError(f"sections need distinct titles, these come twice: {', '.join(sorted(twice))}")
    script, style = (
        (files("spectrakan.report") / f"page.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")
    )
    links, parts = "", ""
    for section in sections:
        content = "".join(map(as_html, section.elements))
        links += f'<li><a href="#{section.anchor}">{escape(section.short or section.title)}</a></li>'
        parts += f'<section id="{section.anchor}"><h2>{escape(section.title)}</h2>{content}</section>'
    navigation = f'<nav aria-label="Sections"><ul>{links}</ul></nav>' if len(sections) > 1 else ""
    end = f"<footer><p>{escape(footer)}</p></footer>" if footer else ""
    body = (
        f'<a class="skip" href="#content">Skip to the content</a>'
        f"<header><h1>{escape(title)}</h1>{''.join(map(as_html, lead))}</header>{navigation}"
        f'<main id="content">{parts}</main>{end}<script>{script}</script>'
    )
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def as_html(element: Element) -> str:
    """An element as HTML, with all words escaped.

    >>> as_html(Paragraph("a < b"))
    '<p>a &lt; b</p>'
    """
    match element:
        case Paragraph():
            return _lines(element.text, ' class="note"' if element.note else "")
        case Picture():
            return _picture(element)
        case Table():
            return _table(element) + _lines("\n".join(element.notes))
        case Origin():
            pairs = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in element.entries)
            codes = "".join(f"<p><code>{escape(code)}</code></p>" for code in element.codes)
            return f"<details><summary>{escape(element.summary)}</summary>{codes}<dl>{pairs}</dl></details>"


def _lines(text: str, kind: str = "") -> str:
    """Paragraphs and lists.

    >>> _lines("note\\n- one\\n- two")
    '<p>note</p><ul><li>one</li><li>two</li></ul>'
    """
    made = ""
    for listed, lines in groupby(filter(None, map(str.strip, text.splitlines())), lambda line: line.startswith("- ")):
        begin, end = ("<li>", "</li>") if listed else (f"<p{kind}>", "</p>")
        inner = "".join(f"{begin}{_inline(line.removeprefix('- ') if listed else line)}{end}" for line in lines)
        made += f"<ul>{inner}</ul>" if listed else inner
    return made


def _inline(text: str) -> str:
    strong = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", strong)


def _picture(picture: Picture) -> str:
    if picture.png[:8] != b"\x89PNG\r\n\x1a\n" or len(picture.png) < 24:
        raise ConfigError("a page holds PNG pictures; this one does not begin as one")
    width, height = struct.unpack(">II", picture.png[16:24])
    kind = ' class="large"' if width > LARGE_PIXELS else ""
    size = f'width="{round(width / PIXEL_RATIO)}" height="{round(height / PIXEL_RATIO)}"'
    source = base64.b64encode(picture.png).decode()
    alt = escape(picture.alt or picture.caption)
    image = f'<img{kind} {size} alt="{alt}" src="data:image/png;base64,{source}">'
    # Wider than a phone, so it must be reachable by keyboard to be scrolled.
    plate = f'<div class="plate" tabindex="0" role="group" aria-label="{alt}">{image}</div>'
    return f"<figure>{plate}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _table(table: Table) -> str:
    """A table that a browser can sort; unranked rows have no value to be sorted by, and stay at the end."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head)
    rows = ""
    for number, row in enumerate(table.rows):
        cells = [_cell(cell, table.mark(number, index), row.ranked) for index, cell in enumerate(row.cells)]
        rows += f'<tr><th scope="row">{escape(row.label)}</th>{"".join(cells)}</tr>'
    title = escape(table.title)
    body = f"<caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    drawn = f'<table class="sortable">{body}</table>'
    return f'<div class="wide" tabindex="0" role="group" aria-label="{title}">{drawn}</div>'


def _cell(cell: Score | str, mark: str, ranked: bool) -> str:
    if isinstance(cell, str):
        return f"<td>{escape(cell)}</td>"
    kind = mark if cell.value is not None else "missing"
    name = f' class="{kind}"' if kind else ""
    value = f' data-value="{float(cell.value)!r}"' if ranked and cell.value is not None else ""
    return f"<td{name}{value}>{escape(score_text(cell))}</td>"
