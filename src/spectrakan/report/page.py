"""One HTML page that needs nothing else: text, a table and pictures inside the file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = (
    "body{font-family:sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.25rem .8rem;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}img{max-width:100%}figcaption{color:#555}figure{margin:1.5rem 0}"
)


@dataclass(frozen=True)
class Picture:
    """A picture and what it shows."""

    png: bytes
    caption: str


def page(title: str, paragraphs: Sequence[str], table: Sequence[Sequence[str]], pictures: Sequence[Picture]) -> str:
    """The page as text; the first row of the table is its head. All words are escaped.

    >>> "&lt;b&gt;" in page("a <b>", [], [["model"]], [])
    True
    """
    parts = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(text)}</p>" for text in paragraphs)]
    if table:
        rows = [_row(table[0], "th"), *(_row(row, "td") for row in table[1:])]
        parts.append(f"<table>{''.join(rows)}</table>")
    for picture in pictures:
        source = base64.b64encode(picture.png).decode()
        caption = escape(picture.caption)
        image = f'<img alt="{caption}" src="data:image/png;base64,{source}">'
        parts.append(f"<figure>{image}<figcaption>{caption}</figcaption></figure>")
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
